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
})
