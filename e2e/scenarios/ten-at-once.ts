import assert from 'node:assert/strict'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** Ten previews are asked for in the same moment: each becomes a database of its own. */
export const tenAtOnce = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  const ids = Array.from({ length: 10 }, (_, index) => `pr-${index + 1}`)
  await Promise.all(ids.map(id => tenant.createEnvironment(id, { kind: 'preview' })))
  await Promise.all(
    ids.map(id => tenant.sql(id, session => session.rows(`create table only_in_${id.slice(3)} (id int)`))),
  )
  const tables = await Promise.all(
    ids.map(id =>
      tenant.sql(id, session =>
        session.rows<{ name: string }>(`select tablename as name from pg_tables where tablename like 'only_in_%'`),
      ),
    ),
  )
  assert.deepEqual(
    tables,
    ids.map(id => [{ name: `only_in_${id.slice(3)}` }]),
  )
  await Promise.all(ids.map(id => tenant.run('delete', id)))
}
