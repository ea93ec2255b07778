import assert from 'node:assert/strict'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { checkServingRole } from './check-serving-role.ts'
import { Database } from './database.ts'

const COLUMN_GRANTS = `do $$ begin
  grant insert (organization_id, actor, action, resource_kind, resource_id, metadata) on audit_events to svc_api;
  grant insert (type, user_id, email, client_ip, user_agent, metadata) on account_events to svc_api;
end $$`

describe('checkServingRole', () => {
  let plane: ControlPlaneDatabase
  before(async () => {
    plane = await controlPlaneDatabase()
  })
  after(() => plane.database.stop())

  const as = async (role: 'svc_owner' | 'postgres', use: (database: Database) => Promise<void>): Promise<void> => {
    const database = new Database({ url: plane.url(role), log: silentLog })
    await use(database).finally(() => database.stop())
  }

  it('lets the serving role pass', () => checkServingRole(plane.database))

  it('refuses the owner and a superuser', async () => {
    for (const role of ['svc_owner', 'postgres'] as const)
      await as(role, database => assert.rejects(checkServingRole(database), /could change the audit log/))
  })

  for (const [grant, object] of [
    ['update', 'audit_events'],
    ['delete', 'audit_events'],
    ['truncate', 'audit_events'],
    ['trigger', 'audit_events'],
    ['update (metadata)', 'audit_events'],
    ['insert (id)', 'audit_events'],
    ['insert', 'audit_events'],
    ['delete', 'account_events'],
    ['insert (occurred_at)', 'account_events'],
    ['update (last_id)', 'audit_heads'],
    ['insert', 'audit_heads'],
    ['execute', 'function next_audit_link(text)'],
  ] as const)
    it(`refuses the serving role once it was granted ${grant} on ${object}`, async () => {
      await as('svc_owner', async database => {
        await database.rows(`grant ${grant} on ${object} to svc_api`)
        await assert.rejects(checkServingRole(plane.database), /could change the audit log/)
        await database.rows(`revoke ${grant} on ${object} from svc_api`)
        // A table-wide revoke takes the column grants along.
        await database.rows(COLUMN_GRANTS)
      })
      await checkServingRole(plane.database)
    })

  for (const role of ['svc_owner', 'pg_write_server_files', 'postgres'] as const)
    it(`refuses the serving role once it may become ${role}`, async () => {
      await as('postgres', async database => {
        await database.rows(`grant ${role} to svc_api`)
        await assert.rejects(checkServingRole(plane.database), /could change the audit log/)
        await database.rows(`revoke ${role} from svc_api`)
      })
      await checkServingRole(plane.database)
    })

  it('says that migrations are missing', async () => {
    const cluster = await testCluster()
    const database = new Database({ url: cluster.url(await cluster.createDatabase(), 'svc_api'), log: silentLog })
    await assert.rejects(checkServingRole(database), /run its migrations first/).finally(() => database.stop())
  })
})
