import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { newRef, TEST_SPEC } from '../../../testkit/local-host.ts'
import { testFolder } from '../../../testkit/server-files.ts'
import { newIntent, readIntent } from './intent.ts'
import { IntentFile } from './intent-file.ts'

describe('an intent on disk', () => {
  const ref = newRef()

  it('ends as the last change in memory, however changes overlap', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('running', 'stopped'), fc.boolean()), { minLength: 1, maxLength: 12 }),
        async changes => {
          const path = join(testFolder(), 'intent.json')
          const file = new IntentFile(path, newIntent(ref, TEST_SPEC, 20_000))
          const under: Promise<void>[] = []
          for (const [wanted, wait] of changes) {
            const change = file.change(before => ({ ...before, wanted: wanted }))
            if (wait) await change
            else under.push(change)
          }
          await Promise.all(under)
          assert.deepEqual(await readIntent(path), file.current)
          assert.equal(file.current.wanted, changes.at(-1)![0])
        },
      ),
      { numRuns: 10 },
    )
  })

  it('makes up for a write that failed with the next one, though nothing changed since', async () => {
    const folder = join(testFolder(), 'f')
    mkdirSync(folder)
    const path = join(folder, 'intent.json')
    const file = new IntentFile(path, newIntent(ref, TEST_SPEC, 20_000))
    renameSync(folder, `${folder}.away`)
    await assert.rejects(
      file.change(before => ({ ...before, wanted: 'running' })),
      { code: 'ENOENT' },
    )
    renameSync(`${folder}.away`, folder)
    await file.change(before => before)
    assert.equal((await readIntent(path))?.wanted, 'running')
  })

  it('is refused when it is cut, of another layout, or nonsense, and absent when it is absent', async () => {
    const folder = testFolder()
    const path = join(folder, 'intent.json')
    assert.equal(await readIntent(path), undefined)
    const file = new IntentFile(path, newIntent(ref, TEST_SPEC, 20_000))
    await file.change(before => before)
    const whole = readFileSync(path, 'utf8')
    for (const text of [
      '',
      whole.slice(0, -5),
      whole.replace('"layout": 1', '"layout": 2'),
      '[]',
      whole.replace('20000', '0'),
    ]) {
      writeFileSync(path, text)
      await assert.rejects(readIntent(path), /damaged or of a newer version/)
    }
  })
})
