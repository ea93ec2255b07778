import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): readonly string[] => readFileSync(join(ROOT, file), 'utf8').split('\n')

/** The folders and files of the checkout that an image is copied from; stages of its own build left out. */
const copiedBy = (dockerfile: string): readonly string[] =>
  read(dockerfile)
    .filter(line => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap(line => line.split(/\s+/).slice(1, -1))
    .filter(word => !word.startsWith('--'))

describe('what images are made of', () => {
  it('is what is named, of the control plane: nothing of version control, no test, no setting of a machine', () => {
    const [first, ...lines] = read('.dockerignore').filter(line => line !== '' && !line.startsWith('#'))
    assert.equal(first, '*')
    const named = lines.filter(line => line.startsWith('!')).map(line => line.slice(1))
    const copied = copiedBy('images/control-plane/Dockerfile')
    assert.ok(copied.length > 8, String(copied.length))
    for (const path of copied) {
      assert.ok(
        named.some(name => path === name || path.startsWith(`${name}/`)),
        path,
      )
      assert.match(path, /^(?:package(?:-lock)?\.json|\.npmrc|[a-z][a-z/.-]*)$/)
    }
    assert.deepEqual(
      named.filter(name => /^\.(?!npmrc$)/.test(name)),
      [],
    )
    assert.ok(lines.includes('**/*.test.ts'))
  })

  it('is a folder of its own, of Postgres, with nothing of version control', () => {
    const folder = join(ROOT, 'images/postgres')
    assert.deepEqual(
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => /(?:^|\/)\.(?:git|svn|hg)/.test(name)),
      [],
    )
    for (const path of copiedBy('images/postgres/Dockerfile')) assert.ok(existsSync(join(folder, path)), path)
  })
})
