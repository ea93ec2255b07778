/** Programs are started with lists of arguments: where no shell reads a line, nobody can write into it (ASVS 1.2.5). */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const PRODUCT = ['lib', 'crds', 'runtime', 'operator', 'apiserver', 'box']
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

const sources = PRODUCT.flatMap(folder =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map(name => join(folder, name)),
)

describe('the product’s programs', () => {
  it('start others without a shell', () => {
    const found = sources.flatMap(file =>
      shellsIn(readFileSync(join(ROOT, file), 'utf8')).map(what => `${file}: ${what}`),
    )
    assert.deepEqual(found, [])
    const starters = sources.filter(file => readFileSync(join(ROOT, file), 'utf8').includes('node:child_process'))
    assert.ok(sources.length > 500 && starters.length > 5, 'too few were read')
  })

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
