import assert from 'node:assert/strict'
import { appendFile, mkdtemp, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AuditLog } from './audit-log.ts'

const line = (name: string): string =>
  `${JSON.stringify({
    stage: 'ResponseComplete',
    verb: 'get',
    user: { username: 'somebody' },
    objectRef: { resource: 'pods', name },
    requestReceivedTimestamp: '2026-11-30T11:00:00.000000Z',
  })}\n`

describe('an audit log that is read', () => {
  let folder: string
  let path: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-audit-'))
    path = join(folder, 'audit.jsonl')
  })
  afterEach(() => rm(folder, { recursive: true }))

  const names = (log: AuditLog): string[] => log.lines().map(({ name }) => name)
  const earlier = (hour: number): string => join(folder, `audit-2026-11-30T${hour}-00-00.000.jsonl`)

  it('tells what was written since, also through files that grew too long and were given other names', async () => {
    await writeFile(earlier(10), line('long-ago'))
    await writeFile(path, line('before'))
    const log = new AuditLog(path)
    await appendFile(path, line('one'))
    assert.deepEqual(names(log), ['one'])

    await rename(path, earlier(11))
    await writeFile(path, line('two'))
    assert.deepEqual(names(log), ['one', 'two'])

    await rename(path, earlier(12))
    await writeFile(path, line('three') + line('half').slice(0, 20))
    assert.deepEqual(names(log), ['one', 'two', 'three'])
  })

  it('says that what came before is lost when the file where it begins is gone', async () => {
    await writeFile(path, line('before'))
    const log = new AuditLog(path)
    await rename(path, earlier(11))
    await writeFile(path, line('two'))
    await unlink(earlier(11))
    assert.throws(() => log.lines(), /the file where it begins is gone/)
  })
})
