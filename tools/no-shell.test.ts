/** Programs are started with lists of arguments: where no shell reads a line, nobody can write into it (ASVS 1.2.5). */
import assert from 'node:assert/strict'
import { productSources } from '../testkit/product-sources.ts'

const STARTS_WITHOUT_SHELL = ['ChildProcess', 'SpawnOptions', 'execFile', 'execFileSync', 'fork', 'spawn', 'spawnSync']

/** What of a source text could put a shell between us and a program. */
const shellsIn = (text: string): readonly string[] => {
  const imported = [...text.matchAll(/import\s+([^;'"]*?)\s+from\s+['"](?:node:)?child_process['"]/g)].flatMap(
    ([, names = '']) => (/^\{[^}]*\}$/.test(names) ? names.slice(1, -1).split(',') : [names]),
  )
  return [
    ...imported
      .map(name => name.replace(/^\s*type\s/, '').trim())
      .filter(name => name !== '' && !STARTS_WITHOUT_SHELL.includes(name)),
    ...(/(?:import|require)\s*\(\s*['"](?:node:)?child_process/.test(text) ? ['a dynamic import'] : []),
    ...(imported.length > 0 && /\bshell\b\s*:/.test(text) ? ['shell:'] : []),
  ]
}

/** What of a source text could run a text as code (ASVS 1.3.2). */
const evaluationsIn = (text: string): readonly string[] =>
  [
    ['eval', /(?<![\w.'"`])(?:globalThis\.)?eval\s*\(/],
    ['a function of a text', /\bnew\s+(?:Async|Generator)?Function\s*\(|(?<![\w.])Function\s*\(\s*['"`]/],
    ['a timer of a text', /\bset(?:Timeout|Interval|Immediate)\s*\(\s*['"`]/],
    ['vm', /['"](?:node:)?vm['"]/],
    ['a module out of a text', /\bimport\s*\(\s*[^'"\s)]|['"`]data:text\/javascript/],
  ].flatMap(([what, form]) => ((form as RegExp).test(text) ? [what as string] : []))

const sources = productSources()

describe('the product’s programs', () => {
  it('start others without a shell', () => {
    const found = sources.flatMap(({ file, text }) => shellsIn(text).map(what => `${file}: ${what}`))
    assert.deepEqual(found, [])
    const starters = sources.filter(({ text }) => text.includes('node:child_process'))
    assert.ok(sources.length > 500 && starters.length > 5, 'too few were read')
  })

  it('run no text as code', () => {
    const found = sources.flatMap(({ file, text }) => evaluationsIn(text).map(what => `${file}: ${what}`))
    assert.deepEqual(found, [])
  })

  const evaluated: readonly (readonly [text: string, found: string])[] = [
    ['const a = eval(text)', 'eval'],
    ['globalThis.eval(text)', 'eval'],
    [`new Function('a', text)`, 'a function of a text'],
    [`setTimeout('run()', 5)`, 'a timer of a text'],
    [`import { runInContext } from 'node:vm'`, 'vm'],
    ['await import(name)', 'a module out of a text'],
  ]
  for (const [text, found] of evaluated)
    it(`would be noticed with ${text}`, () => assert.deepEqual(evaluationsIn(text), [found]))

  const planted: [why: string, text: string, found: readonly string[]][] = [
    ['a line for a shell', `import { exec } from 'node:child_process'`, ['exec']],
    ['one that waits', `import { execFile, execSync as run } from 'child_process'`, ['execSync as run']],
    ['everything', `import * as all from 'node:child_process'`, ['* as all']],
    ['an option', `import { spawn } from 'node:child_process'\nspawn(name, [], { shell: true })`, ['shell:']],
    ['an import while running', `await import('node:child_process')`, ['a dynamic import']],
  ]
  for (const [why, text, found] of planted)
    it(`would be noticed with ${why}`, () => assert.deepEqual(shellsIn(text), found))
})
