import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dropOldLogs } from './log-files.ts'

describe('dropOldLogs', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-logs-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('keeps the five newest files of a server, by the time in their names', async () => {
    const names = Array.from({ length: 8 }, (_, day) => `postgres-2026010${day + 1}-000000.log`)
    for (const name of names.toReversed()) writeFileSync(join(folder, name), 'a line\n')
    await dropOldLogs(folder)
    assert.deepEqual(readdirSync(folder).sort(), names.slice(3))
  })

  it('leaves fewer files, and files that are no logs, as they are', async () => {
    const names = ['note.txt', 'postgres-20260101-000000.log', 'postgres-20260102-000000.log']
    for (const name of names) writeFileSync(join(folder, name), 'a line\n')
    await dropOldLogs(folder)
    assert.deepEqual(readdirSync(folder).sort(), names)
  })
})
