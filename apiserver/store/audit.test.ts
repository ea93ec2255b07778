import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { sized } from '../../testkit/full.ts'
import { type AuditEventRow, insertAccountEvent, insertAuditEvent, listAuditEvents } from './audit.ts'
import type { Sql } from './sql.ts'

describe('the audit log', () => {
  let plane: ControlPlaneDatabase
  let clients: Readonly<Record<'svc_api' | 'svc_owner' | 'postgres', pg.Client>>

  before(async () => {
    // Eight writers queue for one lock: on a machine with more to do than this the last of them waits longer than a call may.
    plane = await controlPlaneDatabase({ maxConnections: 20, lockTimeoutMs: 30_000, statementTimeoutMs: 40_000 })
    const connected = async (role: 'svc_api' | 'svc_owner' | 'postgres'): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: plane.url(role) })
      await client.connect()
      return client
    }
    clients = {
      svc_api: await connected('svc_api'),
      svc_owner: await connected('svc_owner'),
      postgres: await connected('postgres'),
    }
  })
  after(async () => {
    await Promise.all(Object.values(clients).map(client => client.end()))
    await plane.database.stop()
  })

  const insert = (sql: Sql, organizationId: string, serial: string): Promise<void> =>
    insertAuditEvent(sql, {
      organizationId,
      actor: 'user:usr_1',
      action: 'put_project',
      resourceKind: 'project',
      resourceId: serial,
      metadata: { serial },
    })

  it('is numbered without gaps in the order of commits: a reader who follows misses nothing under 16 writers', async () => {
    const writers = 16
    const events = sized(25, 200)
    const organizations = ['acme', 'beta']
    const committed = new Map<string, Set<string>>(organizations.map(id => [id, new Set()]))
    let running = writers
    const write = async (writer: number): Promise<void> => {
      for (let n = 0; n < events; n++) {
        const organization = organizations[(writer + n) % 2] ?? 'acme'
        const serial = `${writer}-${n}`
        const fails = n % 7 === 3
        await plane.database
          .transaction(async sql => {
            await insert(sql, organization, serial)
            // Between the insert and the commit the others catch up: here a bare sequence loses events.
            if (n % 3 === 0) await sleep(Math.random() * 3)
            if (fails) throw new Error('rolled back')
          })
          .then(
            () => committed.get(organization)?.add(serial),
            (error: unknown) => assert.ok(fails, error as Error),
          )
      }
      running--
    }
    const follow = async (organization: string): Promise<AuditEventRow[]> => {
      const seen: AuditEventRow[] = []
      for (let last = false; ; ) {
        const { items } = await listAuditEvents(plane.database, organization, seen.at(-1)?.id ?? 0, 10)
        seen.push(...items)
        if (items.length > 0) continue
        if (last) return seen
        last = running === 0
      }
    }
    const [acme, beta] = await Promise.all([
      follow('acme'),
      follow('beta'),
      ...Array.from({ length: writers }, (_, writer) => write(writer)),
    ])
    for (const [organization, seen] of [
      ['acme', acme],
      ['beta', beta],
    ] as const) {
      assert.deepEqual(new Set(seen.map(({ resourceId }) => resourceId)), committed.get(organization))
      assert.deepEqual(
        seen.map(({ id }) => id),
        Array.from({ length: seen.length }, (_, index) => index + 1),
      )
      for (const [index, { occurredAt }] of seen.entries())
        assert.ok(index === 0 || occurredAt >= (seen[index - 1]?.occurredAt ?? occurredAt), 'time runs backwards')
    }
  }).timeout(120_000)

  it('says by next_cursor whether there is more', async () => {
    for (let n = 1; n <= 5; n++) await plane.database.transaction(sql => insert(sql, 'paged', String(n)))
    const pages: [ids: number[], nextCursor: number | null][] = []
    for (let after = 0; ; ) {
      const { items, nextCursor } = await listAuditEvents(plane.database, 'paged', after, 2)
      pages.push([items.map(({ id }) => id), nextCursor])
      if (nextCursor === null) break
      after = nextCursor
    }
    assert.deepEqual(pages, [
      [[1, 2], 2],
      [[3, 4], 4],
      [[5], null],
    ])
  })

  describe('cannot be changed', () => {
    const tables = ['audit_events', 'account_events'] as const
    before(() =>
      plane.database.transaction(async sql => {
        await insert(sql, 'kept', 'first')
        await insertAccountEvent(sql, {
          type: 'create_token',
          userId: 'usr_1',
          clientIp: null,
          userAgent: undefined,
          metadata: {},
        })
      }),
    )
    const everything = async (): Promise<unknown> => {
      const digest = (table: string): string =>
        `(select md5(string_agg(t::text, ',' order by t::text)) from ${table} t)`
      return (await clients.postgres.query(`select ${tables.map(digest).join(', ')}`)).rows
    }
    const refused = async (role: keyof typeof clients, sql: string): Promise<void> => {
      const before = await everything()
      await assert.rejects(clients[role].query(sql), { code: '42501' }, `${role}: ${sql}`)
      assert.deepEqual(await everything(), before)
    }

    for (const role of ['svc_api', 'svc_owner', 'postgres'] as const)
      for (const table of tables)
        it(`by ${role}: no UPDATE, DELETE or TRUNCATE of ${table}`, async () => {
          await refused(role, `update ${table} set metadata = '{}'`)
          await refused(role, `delete from ${table}`)
          await refused(role, `truncate ${table}`)
          await refused(role, `truncate ${table} cascade`)
        })

    it('by a superuser who plays a replica, where ordinary triggers rest', async () => {
      await clients.postgres.query('set session_replication_role = replica')
      for (const table of tables) {
        await refused('postgres', `update ${table} set metadata = '{}'`)
        await refused('postgres', `delete from ${table}`)
        await refused('postgres', `truncate ${table}`)
      }
      await clients.postgres.query('reset session_replication_role')
    })

    for (const role of ['svc_api', 'svc_owner', 'postgres'] as const)
      it(`by ${role}: no number or time of one's own`, async () => {
        const columns = 'organization_id, actor, action, resource_kind, resource_id, metadata'
        const values = `'kept', 'x', 'x', 'x', 'x', '{}'`
        await refused(role, `insert into audit_events (id, ${columns}) values (99, ${values})`)
        await refused(role, `insert into audit_events (occurred_at, ${columns}) values ('2000-01-01', ${values})`)
        await refused(role, `insert into account_events (id, type, metadata) values (99, 'x', '{}')`)
        await refused(role, `insert into account_events (occurred_at, type, metadata) values ('2000-01-01', 'x', '{}')`)
      })

    it('by svc_api: neither the heads, nor the triggers, nor an upsert', async () => {
      for (const sql of [
        `update audit_heads set last_id = 0`,
        `insert into audit_heads values ('kept', 0)`,
        `delete from audit_heads`,
        `select next_audit_link('kept')`,
        `alter table audit_events disable trigger all`,
        `drop table audit_events`,
        `create trigger mine before insert on audit_events for each row execute function suppress_redundant_updates_trigger()`,
        `insert into audit_events (organization_id, actor, action, resource_kind, resource_id, metadata)
           values ('kept', 'x', 'x', 'x', 'x', '{}') on conflict (organization_id, id) do update set actor = 'y'`,
        `set session_replication_role = replica`,
      ])
        await refused('svc_api', sql)
    })
  })
})
