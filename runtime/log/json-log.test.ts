import assert from 'node:assert/strict'
import { jsonLog } from './json-log.ts'

const written = (use: (log: ReturnType<typeof jsonLog>) => void): Record<string, unknown>[] => {
  const lines: string[] = []
  use(jsonLog({ write: line => void lines.push(line) }))
  return lines.map(line => JSON.parse(line) as Record<string, unknown>)
}

describe('jsonLog', () => {
  it('writes one object a line, with the fields of its parents', () => {
    const [line] = written(log => log.child({ request_id: 'r1' }).info({ status: 202 }, 'Answered'))
    assert.deepEqual(Object.keys(line!), ['level', 'time', 'request_id', 'status', 'msg'])
    assert.deepEqual([line!['level'], line!['msg'], line!['request_id']], ['info', 'Answered', 'r1'])
    assert.ok(!Number.isNaN(Date.parse(String(line!['time']))))
  })

  it('lets nobody begin a line of their own: line breaks and controls are escaped, wherever they stand', () => {
    const forged = '\r\n{"level":"error","msg":"forged"}\n\u0000\u001b[2K\u2028'
    const lines: string[] = []
    const log = jsonLog({ write: line => void lines.push(line) })
    log.info({ user_agent: forged, [forged]: [forged] }, forged)
    log.child({ request_id: forged }).warn({ err: new Error(forged) }, 'x')
    assert.equal(lines.length, 2)
    for (const line of lines) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      assert.doesNotMatch(line.replace(/\n$/, ''), /[\u0000-\u001f]/)
      assert.notEqual((JSON.parse(line) as { msg: string }).msg, 'forged')
    }
    const [first] = lines.map(line => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual([first?.['user_agent'], first?.['msg'], first?.[forged]], [forged, forged, [forged]])
  })

  it('tells an error and its causes, and none of the fields that a driver hangs on them', () => {
    const cause = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (token)=(svc_pat_canary)' })
    const [line] = written(log => log.error({ err: new Error('Cannot insert', { cause }) }, 'Failed'))
    const { message, cause: told } = line!['err'] as { message: string; cause: { code: string; message: string } }
    assert.deepEqual([message, told.code, told.message], ['Cannot insert', '23505', 'duplicate key'])
    assert.ok(!JSON.stringify(line).includes('canary'))
  })

  it('never writes what is named like a secret', () => {
    const lines = written(log => {
      log.info({ password: 'canary', token: 'canary' }, 'One')
      log.info({ headers: { authorization: 'canary', cookie: 'canary' } }, 'Two')
      log.child({ secret: 'canary' }).warn({}, 'Three')
    })
    assert.equal(lines.length, 3)
    assert.ok(!JSON.stringify(lines).includes('canary'), JSON.stringify(lines))
  })

  it('leaves out what is below its level', () => {
    assert.deepEqual(
      written(log => log.debug({}, 'Too fine')),
      [],
    )
  })
})
