import assert from 'node:assert/strict'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { checkServingRole } from './check-serving-role.ts'
import { Database } from './database.ts'

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

  for (const grant of ['update', 'delete', 'truncate', 'update (metadata)'])
    it(`refuses the serving role once it was granted ${grant}`, async () => {
      await as('svc_owner', async database => {
        await database.rows(`grant ${grant} on audit_events to svc_api`)
        await assert.rejects(checkServingRole(plane.database), /could change the audit log/)
        await database.rows(`revoke ${grant} on audit_events from svc_api`)
      })
      await checkServingRole(plane.database)
    })

  it('says that migrations are missing', async () => {
    const cluster = await testCluster()
    const database = new Database({ url: cluster.url(await cluster.createDatabase(), 'svc_api'), log: silentLog })
    await assert.rejects(checkServingRole(database), /run its migrations first/).finally(() => database.stop())
  })
})
