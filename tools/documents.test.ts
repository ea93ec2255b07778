import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CONDITION_TYPES } from '../crds/conditions.ts'

const root = join(import.meta.dirname, '..')

/** Paths of this checkout in backquotes: they hold a slash, and begin with a folder of ours. */
const namedPaths = (text: string): string[] =>
  [
    ...text.matchAll(
      /`((?:apiserver|operator|runtime|crds|lib|box|testkit|tools|e2e|bench|docs|charts|manifests|images)\/[\w./-]+)`/g,
    ),
  ].flatMap(match => match[1] ?? [])

/** Targets of Markdown links that are not addresses. */
const linkedPaths = (text: string): string[] =>
  [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].flatMap(match => match[1] ?? [])

/** Reasons of conditions and events, by the ways in which the code gives them. */
const reasonsIn = (source: string): string[] =>
  [
    /\breason(?::| =) '([A-Z][A-Za-z]+)'/g,
    /\b(?:holds|fails|unknown|normal|warning)\('([A-Z][A-Za-z]+)'/g,
    /\bConditionError\(\s*'[A-Z][A-Za-z]+',\s*'([A-Z][A-Za-z]+)'/g,
    /\breason: [^'\n]+\? '([A-Z][A-Za-z]+)' : '([A-Z][A-Za-z]+)'/g,
    /: '((?:ImagePull|Container)[A-Za-z]+)'/g,
  ].flatMap(pattern => [...source.matchAll(pattern)].flatMap(([, ...words]) => words))

describe('the documents', () => {
  const documents = ['README.md', 'ARCHITECTURE.md', ...globSync('{docs,docs/changes,manifests}/*.md', { cwd: root })]
  for (const document of documents) {
    it(`${document} names only files and folders that exist`, () => {
      const text = readFileSync(join(root, document), 'utf8')
      const [named, linked] = [namedPaths(text), linkedPaths(text)]
      if (!document.includes('/'))
        assert.ok(named.length + linked.length > 3, 'found hardly any path: the pattern no longer fits')
      assert.deepEqual(
        named.filter(path => !existsSync(join(root, path))),
        [],
      )
      assert.deepEqual(
        linked.filter(path => !existsSync(join(root, dirname(document), path))),
        [],
      )
    })
  }

  it('docs/svc.service starts what is there, and lets databases outlive the control plane', () => {
    const unit = readFileSync(join(root, 'docs', 'svc.service'), 'utf8')
    const [, folder, program, script] = /^ExecStart=(\/opt\/svc)\/(\S+) (\S+)$/m.exec(unit) ?? []
    assert.ok(program && script)
    assert.match(unit, new RegExp(`^WorkingDirectory=${folder}$`, 'm'))
    for (const path of [program, script]) assert.ok(existsSync(join(root, path)), path)
    assert.match(unit, /^Environment=SERVICE_KEEP_DATABASES=1$/m)
    // With the default systemd would end the databases along with the control plane.
    assert.match(unit, /^KillMode=process$/m)
  })

  it('docs/operations.md says of every condition and every reason what it means', () => {
    const files = [...globSync('{operator,runtime/postgres}/**/*.ts', { cwd: root })]
      .filter(file => !/\.(test|contract)\.ts$/.test(file))
      .map(file => readFileSync(join(root, file), 'utf8'))
    const reasons = new Set(files.flatMap(reasonsIn))
    assert.ok(reasons.size > 50, `found ${reasons.size} reasons: the patterns no longer fit`)
    const told = readFileSync(join(root, 'docs/operations.md'), 'utf8')
    assert.deepEqual([...reasons, ...CONDITION_TYPES].filter(word => !told.includes(`\`${word}\``)).sort(), [])
  })
})
