import assert from 'node:assert/strict'
import { createHash, randomInt } from 'node:crypto'
import pg from 'pg'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { sized } from '../../testkit/full.ts'
import { insertAccountEvent, insertAuditEvent } from './audit.ts'
import { ACCOUNT_CHAIN, listChainHeads, verifyChain } from './audit-chain.ts'

describe('the chain of audit events', () => {
  let plane: ControlPlaneDatabase
  /** Whoever can do anything to the database. */
  let intruder: pg.Client
  before(async () => {
    plane = await controlPlaneDatabase({ maxConnections: 12 })
    intruder = new pg.Client({ connectionString: plane.url('postgres') })
    await intruder.connect()
    for (const table of ['audit_events', 'account_events'])
      await intruder.query(`alter table ${table} disable trigger user`)
    for (const table of ['audit', 'account'])
      await intruder.query(`alter table ${table}_events enable always trigger ${table}_events_number`)
  })
  after(async () => {
    await intruder.end()
    await plane.database.stop()
  })

  let organizations = 0
  const written = async (count: number): Promise<string> => {
    const organizationId = `org-${++organizations}`
    for (let n = 1; n <= count; n++)
      await plane.database.transaction(sql =>
        insertAuditEvent(sql, {
          organizationId,
          actor: 'user:usr_1',
          action: 'put_project',
          resourceKind: 'project',
          resourceId: `p${n}`,
          metadata: { n, text: 'ünï"codé\\', list: [1, null, { a: 1.5 }] },
        }),
      )
    return organizationId
  }
  const broken = async (organizationId: string) => (await verifyChain(plane.database, organizationId)).broken

  it('hashes what it always hashed: a migration that changes that calls every older event changed', async () => {
    const event = {
      ...{ organization_id: 'acme', id: 7, actor: 'user:usr_1', action: 'put_project', resource_kind: 'project' },
      ...{ resource_id: 'p7', occurred_at: '2026-11-30T12:00:00.123Z', metadata: { n: 1, text: 'ünï"codé' } },
    }
    const account = {
      ...{ id: 7, type: 'sign_in', user_id: null, email: 'a@example.com', client_ip: '203.0.113.9', user_agent: 'x' },
      ...{ occurred_at: '2026-11-30T12:00:00.123Z', metadata: {} },
    }
    const hashed = await intruder.query<Record<string, string>>(
      `select encode(audit_event_hash(first_audit_hash('acme'), jsonb_populate_record(null::audit_events, $1)), 'hex') as event,
        encode(account_event_hash(first_audit_hash(''), jsonb_populate_record(null::account_events, $2)), 'hex') as account`,
      [JSON.stringify(event), JSON.stringify(account)],
    )
    // sha256 of the hash before and of the event's members as PostgreSQL writes a JSON array, computed beside it.
    const sha256 = (...parts: (string | Buffer)[]): Buffer =>
      parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
    const members = (...texts: string[]): string => `[${texts.join(', ')}]`
    assert.deepEqual(hashed.rows, [
      {
        event: sha256(
          sha256('svc audit acme'),
          members(
            ...['"acme"', '7', '"user:usr_1"', '"put_project"', '"project"', '"p7"', '1796040000123'],
            '{"n": 1, "text": "ünï\\"codé"}',
          ),
        ).toString('hex'),
        account: sha256(
          sha256('svc audit '),
          members(
            ...['""', '7', '"sign_in"', 'null', '"a@example.com"', '"203.0.113.9"', '"x"', '1796040000123', '{}'],
          ),
        ).toString('hex'),
      },
    ])
  })

  it('holds for what was written, by many at once, up to its head', async () => {
    const one = await written(3)
    await Promise.all(
      Array.from({ length: sized(40, 400) }, (_, n) =>
        plane.database.transaction(sql =>
          insertAuditEvent(sql, {
            organizationId: one,
            actor: 'system:ttl',
            action: 'delete_environment',
            resourceKind: 'environment',
            resourceId: `e${n}`,
            metadata: {},
          }),
        ),
      ),
    )
    const verdict = await verifyChain(plane.database, one)
    assert.deepEqual([verdict.broken, verdict.events, verdict.head?.id], [undefined, sized(43, 403), sized(43, 403)])
    assert.match(verdict.head?.hash ?? '', /^[0-9a-f]{64}$/)
    assert.ok((await listChainHeads(plane.database)).some(({ organizationId }) => organizationId === one))
    assert.deepEqual(await verifyChain(plane.database, 'never-seen'), {
      organizationId: 'never-seen',
      events: 0,
      head: undefined,
      broken: undefined,
    })
  })

  it('holds for the events of accounts too', async () => {
    const event = {
      type: 'sign_in_failed',
      userId: null,
      email: 'ada@example.com',
      clientIp: '::1',
      userAgent: undefined,
    } as const
    for (let n = 0; n < 4; n++)
      await plane.database.transaction(sql => insertAccountEvent(sql, { ...event, metadata: { n } }))
    assert.equal(await broken(ACCOUNT_CHAIN), undefined)
    await intruder.query(`update account_events set client_ip = '::2' where id = 2`)
    assert.deepEqual(await broken(ACCOUNT_CHAIN), { id: 2, problem: 'changed' })
  })

  const CHANGES: readonly (readonly [what: string, sql: string])[] = [
    ['an actor', `actor = 'user:usr_2'`],
    ['an action', `action = 'put_member'`],
    ['a kind', `resource_kind = 'member'`],
    ['a resource', `resource_id = resource_id || 'x'`],
    ['a time', `occurred_at = occurred_at + interval '1 ms'`],
    ['a parameter', `metadata = jsonb_set(metadata, '{n}', '99')`],
    ['a key', `metadata = metadata - 'text'`],
    ['a hash', `hash = sha256(hash)`],
  ]
  for (const [what, change] of CHANGES)
    it(`names the event of which ${what} was changed, wherever it stands`, async () => {
      for (const id of [1, 4, 6]) {
        const organization = await written(6)
        await intruder.query(`update audit_events set ${change} where organization_id = $1 and id = $2`, [
          organization,
          id,
        ])
        assert.deepEqual(await broken(organization), { id, problem: 'changed' })
      }
    })

  it('names an event that was removed, from the front, the middle and the end', async () => {
    for (const id of [1, 3, 5]) {
      const organization = await written(5)
      await intruder.query('delete from audit_events where organization_id = $1 and id = $2', [organization, id])
      assert.deepEqual(await broken(organization), { id, problem: 'missing' })
    }
    const all = await written(5)
    await intruder.query('delete from audit_events where organization_id = $1', [all])
    assert.deepEqual(await broken(all), { id: 1, problem: 'missing' })
  })

  it('names events that changed places, that were slipped in, or whose head is gone', async () => {
    const swapped = await written(5)
    await intruder.query(
      `update audit_events set id = case id when 2 then -2 when 3 then -3 end where organization_id = $1 and id in (2, 3)`,
      [swapped],
    )
    await intruder.query(
      `update audit_events set id = case id when -2 then 3 else 2 end where organization_id = $1 and id < 0`,
      [swapped],
    )
    assert.deepEqual(await broken(swapped), { id: 2, problem: 'changed' })
    const headless = await written(3)
    await intruder.query('delete from audit_heads where organization_id = $1', [headless])
    assert.deepEqual(await broken(headless), { id: 1, problem: 'changed' })
    const cut = await written(4)
    await intruder.query('update audit_heads set last_id = 3 where organization_id = $1', [cut])
    assert.deepEqual(await broken(cut), { id: 3, problem: 'changed' })
  })

  it('notices each of many tampers at random', async () => {
    const count = 30
    const organization = await written(count)
    for (let round = 0; round < sized(20, 1000); round++) {
      const id = randomInt(1, count + 1)
      const [, change] = CHANGES[randomInt(CHANGES.length)]!
      await intruder.query('begin')
      await intruder.query(`update audit_events set ${change} where organization_id = $1 and id = $2`, [
        organization,
        id,
      ])
      const verdict = await verifyChain({ row: one, rows: many } as never, organization)
      await intruder.query('rollback')
      assert.equal(verdict.broken?.id, id, change)
    }
    assert.equal(await broken(organization), undefined)
  })
  /** Numbers as numbers, as the server reads them: the client of pg answers bigint as text. */
  const many = async (sql: string, values: unknown[]): Promise<unknown[]> =>
    (await intruder.query<Record<string, unknown>>(sql, values)).rows.map(row =>
      Object.fromEntries(
        Object.entries(row).map(([key, value]) => [key, typeof value === 'string' ? Number(value) : value]),
      ),
    )
  const one = async (sql: string, values: unknown[]): Promise<unknown> => (await many(sql, values))[0]

  it('is not the serving role’s to change, nor its hashes to give', async () => {
    const serving = new pg.Client({ connectionString: plane.url('svc_api') })
    await serving.connect()
    const event = `insert into audit_events (organization_id, actor, action, resource_kind, resource_id, metadata, hash)
      values ('x', 'a', 'b', 'c', 'd', '{}', sha256('x'))`
    for (const sql of [event, `update audit_heads set last_hash = null`, `select public.next_audit_link('x')`])
      await assert.rejects(serving.query(sql), { code: '42501' }, sql)
    await serving.end()
  })
})
