import assert from 'node:assert/strict'
import { jsonLog } from '../runtime/log/json-log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../testkit/control-plane-database.ts'
import { auditHeads } from './audit-heads.ts'
import { insertAccountEvent, insertAuditEvent } from './store/audit.ts'
import { ACCOUNT_CHAIN, verifyChain } from './store/audit-chain.ts'

describe('the heads of the audit log', () => {
  let plane: ControlPlaneDatabase
  before(async () => {
    plane = await controlPlaneDatabase()
  })
  after(() => plane.database.stop())

  const write = (organizationId: string): Promise<unknown> =>
    plane.database.transaction(sql =>
      insertAuditEvent(sql, {
        ...{ organizationId, actor: 'user:usr_1', action: 'put_project' },
        ...{ resourceKind: 'project', resourceId: 'p', metadata: {} },
      }),
    )

  it('are said in the log, whole, once an hour and only where they moved', async () => {
    const lines: string[] = []
    const log = jsonLog({ write: line => void lines.push(line) }, 'info')
    let now = 0
    const heads = auditHeads(plane.database, log, () => now)
    const said = async (): Promise<unknown[]> => {
      await heads.say()
      return lines.splice(0).map(line => {
        const { part, chain, event, hash } = JSON.parse(line) as Record<string, unknown>
        return [part, chain, event, hash]
      })
    }
    const headOf = async (chain: string): Promise<unknown[]> => {
      const { head } = await verifyChain(plane.database, chain)
      return ['audit', chain === ACCOUNT_CHAIN ? 'accounts' : chain, head?.id, head?.hash]
    }
    await write('one')
    await write('two')
    await plane.database.transaction(sql =>
      insertAccountEvent(sql, {
        type: 'sign_in',
        userId: null,
        clientIp: '203.0.113.1',
        userAgent: undefined,
        metadata: {},
      }),
    )
    assert.deepEqual(await said(), [await headOf(ACCOUNT_CHAIN), await headOf('one'), await headOf('two')])
    await write('two')
    now = 3_599_000
    assert.deepEqual(await said(), [])
    now = 3_600_000
    assert.deepEqual(await said(), [await headOf('two')])
    now = 7_200_000
    assert.deepEqual(await said(), [])
  })

  it('are said at the next call when they could not be read', async () => {
    const lines: string[] = []
    let broken = true
    const database = Object.create(plane.database) as typeof plane.database
    const rows = plane.database.rows.bind(plane.database)
    database.rows = (...asked) => (broken ? Promise.reject(new Error('away')) : rows(...asked))
    const heads = auditHeads(database, jsonLog({ write: line => void lines.push(line) }, 'info'))
    await assert.rejects(heads.say(), /away/)
    broken = false
    await heads.say()
    assert.ok(lines.length >= 3)
  })
})
