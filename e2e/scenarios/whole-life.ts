import assert from 'node:assert/strict'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** What usage says while one session of the tenant's is open: a database with rows is over 7 MB. */
const usageOf = async (tenant: Tenant, id: string): Promise<{ moreThanEmpty: boolean; connections: number | null }> => {
  const session = await tenant.open(id)
  try {
    await session.rows('select 1')
    const usage = await tenant.world.api.expect<{ caps: { name: string; used: number | null }[] }>(
      200,
      'GET',
      tenant.path(id, '/usage'),
    )
    const used = (name: string): number | null => usage.caps.find(cap => cap.name === name)?.used ?? null
    return { moreThanEmpty: (used('database_bytes') ?? 0) > 7_000_000, connections: used('connections') }
  } finally {
    await session.close()
  }
}

/** Somebody opens a preview, works in it, puts it to sleep, wakes it, keeps it a little longer and removes it. */
export const wholeLife = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  await tenant.createEnvironment('pr-41', { kind: 'preview', ttl_hours: 2 })
  assert.equal((await tenant.environment('pr-41')).phase, 'ready')

  await tenant.sql('pr-41', async session => {
    await session.rows('create table notes (id int primary key, body text)')
    await session.rows(`insert into notes select n, 'note ' || n from generate_series(1, 1000) n`)
  })

  assert.deepEqual(await usageOf(tenant, 'pr-41'), { moreThanEmpty: true, connections: 1 })

  await tenant.run('suspend', 'pr-41')
  assert.equal((await tenant.environment('pr-41')).phase, 'suspended')
  await tenant.run('resume', 'pr-41')
  const kept = await tenant.sql('pr-41', session =>
    session.rows<{ count: number; last: string }>('select count(*)::int as count, max(body) as last from notes'),
  )
  assert.deepEqual(kept, [{ count: 1000, last: 'note 999' }])

  const before = (await tenant.environment('pr-41')).expires_at_epoch_seconds!
  await world.api.expect(200, 'POST', tenant.path('pr-41', '/renew'), { body: { ttl_hours: 48 } })
  const after = (await tenant.environment('pr-41')).expires_at_epoch_seconds!
  assert.ok(after - before > 45 * 3600, `Renewing moved the expiry from ${before} to ${after}`)

  const { connection_uri, ca_certificate } = await tenant.connection('pr-41')
  await tenant.run('delete', 'pr-41')
  assert.equal((await tenant.environment('pr-41')).phase, 'deleted')
  await assert.rejects(world.openSql(connection_uri, ca_certificate))

  assert.deepEqual(
    (await tenant.auditEvents()).filter(event => event.action !== 'read_connection').map(event => event.action),
    [
      'put_organization',
      'put_project',
      'create_environment',
      'suspend_environment',
      'resume_environment',
      'renew_environment',
      'delete_environment',
    ],
  )
}
