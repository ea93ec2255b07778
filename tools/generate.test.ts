import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from './generate.ts'
import { GENERATORS } from './generators.ts'

describe('generate', () => {
  let root = ''
  before(async () => (root = await mkdtemp(join(tmpdir(), 'generate-'))))
  after(() => rm(root, { recursive: true }))

  const one = [{ path: 'docs/one.md', render: () => 'a\nb\n' }]

  it('reports a missing and an edited file in check mode and touches neither', async () => {
    assert.deepEqual(await generate(one, root, { check: true }), ['docs/one.md is missing'])
    await assert.rejects(readFile(join(root, 'docs/one.md')), { code: 'ENOENT' })
    await generate(one, root, { check: false })
    assert.deepEqual(await generate(one, root, { check: true }), [])
    await writeFile(join(root, 'docs/one.md'), 'a\nedited\n')
    assert.deepEqual(await generate(one, root, { check: true }), [
      'docs/one.md differs at line 2: has "edited", should be "b"',
    ])
    assert.equal(await readFile(join(root, 'docs/one.md'), 'utf8'), 'a\nedited\n')
  })

  it('writes what is stale', async () => {
    await generate(one, root, { check: false })
    assert.equal(await readFile(join(root, 'docs/one.md'), 'utf8'), 'a\nb\n')
  })

  it('renders every file of ours the same way twice', async () => {
    for (const { path, render } of GENERATORS) assert.equal(await render(), await render(), path)
  })
})
