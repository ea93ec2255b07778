import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Paths of this checkout in backquotes: they hold a slash, and begin with a folder of ours. */
const namedPaths = (text: string): string[] =>
  [...text.matchAll(/`((?:apiserver|operator|runtime|crds|lib|box|testkit|tools|e2e|bench|docs)\/[\w./-]+)`/g)].flatMap(
    match => match[1] ?? [],
  )

/** Targets of Markdown links that are not addresses. */
const linkedPaths = (text: string): string[] =>
  [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].flatMap(match => match[1] ?? [])

describe('the documents', () => {
  for (const document of ['README.md', 'ARCHITECTURE.md']) {
    it(`${document} names only files and folders that exist`, () => {
      const text = readFileSync(join(root, document), 'utf8')
      const named = [...namedPaths(text), ...linkedPaths(text)]
      assert.ok(named.length > 3, 'found hardly any path: the pattern no longer fits')
      assert.deepEqual(
        named.filter(path => !existsSync(join(dirname(join(root, document)), path))),
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
})
