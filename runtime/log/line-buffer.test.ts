import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { jsonLog } from './json-log.ts'
import { lineBuffer } from './line-buffer.ts'

describe('lineBuffer', () => {
  it('writes many lines at a time, in order, and errors at once with what came before', async () => {
    const written: string[] = []
    const log = jsonLog(lineBuffer({ write: text => written.push(text) }))
    for (let i = 0; i < 50; i++) log.info({ i }, 'Line')
    assert.equal(written.length, 0)
    log.error({}, 'Last')
    assert.equal(written.length, 1)
    const lines = written[0]!.trimEnd().split('\n')
    assert.deepEqual(
      lines.map(line => (JSON.parse(line) as { i?: number; msg: string }).i ?? 'Last'),
      [...Array.from({ length: 50 }, (_, i) => i), 'Last'],
    )
    log.info({}, 'Later')
    while (written.length === 1) await sleep(10)
    assert.match(written[1]!, /Later/)
  })
})
