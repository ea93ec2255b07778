import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** A preview whose time is over is swept by nobody's call, its neighbour lives on, and the log says who did it. */
export const expiry = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  await Promise.all([
    tenant.createEnvironment('pr-1', { kind: 'preview', ttl_hours: 1 }),
    tenant.createEnvironment('pr-2', { kind: 'preview', ttl_hours: 1 }),
  ])
  // Longer ago than the minute of grace that the sweep waits.
  const expiresAt = new Date(Date.now() - 120_000).toISOString()
  await world.store.patch(
    environmentType,
    tenant.key('pr-1'),
    { spec: { expiresAt } },
    { uid: await tenant.uid('pr-1') },
  )
  await tenant.inPhase('pr-1', 'deleted')
  assert.equal((await tenant.environment('pr-2')).phase, 'ready')

  const renewal = await world.api.call('POST', tenant.path('pr-1', '/renew'), { body: { ttl_hours: 1 } })
  assert.equal(renewal.status, 409, renewal.text)

  // The event is written with the row that answered `deleted`, or a moment later.
  const until = Date.now() + 10_000
  for (;;) {
    const swept = (await tenant.auditEvents()).filter(event => event.action === 'delete_environment')
    if (swept.length > 0) {
      assert.deepEqual(
        swept.map(event => event.actor),
        ['system:ttl'],
      )
      return
    }
    assert.ok(Date.now() < until, 'No delete_environment event after the sweep')
    await sleep(50)
  }
}
