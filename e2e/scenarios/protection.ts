import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from '../../crds/conditions.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import type { Problem } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

const protect = async (tenant: Tenant, id: string, on: boolean): Promise<void> => {
  await tenant.world.api.expect(200, 'PATCH', tenant.path(id), { body: { deletion_protection: on } })
}

/** Waits until the resource's expiry is told with this reason. */
const expiredReason = async (tenant: Tenant, id: string, reason: string | undefined): Promise<void> => {
  const until = Date.now() + 30_000
  for (;;) {
    const { status } = (await tenant.world.store.get(environmentType, tenant.key(id))) ?? {}
    const told = conditionOf(status?.conditions, 'Expired')?.reason
    if (told === reason) return
    assert.ok(Date.now() < until, `Its expiry is told as ${told}, not as ${reason}`)
    await sleep(50)
  }
}

const moveExpiry = async (tenant: Tenant, id: string, msFromNow: number): Promise<void> => {
  const expiresAt = new Date(Date.now() + msFromNow).toISOString()
  const uid = await tenant.uid(id)
  await tenant.world.store.patch(environmentType, tenant.key(id), { spec: { expiresAt } }, { uid })
}

/** Refused at once with a reason, and nothing is remembered of it: who lifts the protection has deleted nothing. */
const refusedForGood = async (tenant: Tenant, id: string): Promise<void> => {
  const { api, store } = tenant.world
  await tenant.createEnvironment(id, { deletion_protection: true })
  const session = await tenant.open(id)
  const refused = await api.call<Problem>('DELETE', tenant.path(id))
  assert.deepEqual([refused.status, refused.body.code], [409, 'deletion_protected'])
  const uid = await tenant.uid(id)
  await assert.rejects(store.delete(environmentType, tenant.key(id), { uid }), (error: unknown) =>
    isStoreError(error, 'Forbidden'),
  )
  const kept = await store.get(environmentType, tenant.key(id))
  assert.deepEqual([kept?.metadata.uid, kept?.metadata.deletionTimestamp], [uid, undefined])
  await protect(tenant, id, false)
  await sleep(2000)
  // The very session that was open before: nothing was stopped in between.
  assert.deepEqual(await session.rows('select 1 as one'), [{ one: 1 }])
  await session.close()
  assert.equal((await tenant.environment(id)).phase, 'ready')
  const { operations } = await api.expect<{ operations: { kind: string }[] }>(
    200,
    'GET',
    tenant.path(id, '/operations'),
  )
  assert.deepEqual(
    operations.map(({ kind }) => kind),
    ['create_environment'],
  )
  await tenant.run('delete', id)
}

/** Its time is over, its protection keeps it; whoever lifts that has a minute to think again. */
const savedInTheGrace = async (tenant: Tenant, id: string): Promise<void> => {
  await tenant.createEnvironment(id, { kind: 'preview', ttl_hours: 1, deletion_protection: true })
  await moveExpiry(tenant, id, -3_600_000)
  await expiredReason(tenant, id, 'Protected')
  assert.equal((await tenant.environment(id)).phase, 'ready')
  await protect(tenant, id, false)
  await expiredReason(tenant, id, 'InGrace')
  // Unprotected, it cannot be renewed any more; protected again, it can.
  const late = await tenant.world.api.call<Problem>('POST', tenant.path(id, '/renew'), { body: { ttl_hours: 2 } })
  assert.deepEqual([late.status, late.body.code], [409, 'environment_expired'])
  await protect(tenant, id, true)
  await tenant.world.api.expect(200, 'POST', tenant.path(id, '/renew'), { body: { ttl_hours: 2 } })
  await expiredReason(tenant, id, undefined)
  await protect(tenant, id, false)
  await sleep(1000)
  assert.equal((await tenant.environment(id)).phase, 'ready')
  await tenant.run('delete', id)
}

/** Nobody thinks again: after the minute, and not before, the sweep takes it. */
const sweptAfterTheGrace = async (tenant: Tenant, id: string): Promise<void> => {
  await tenant.createEnvironment(id, { kind: 'preview', ttl_hours: 1, deletion_protection: true })
  await moveExpiry(tenant, id, -3_600_000)
  await expiredReason(tenant, id, 'Protected')
  const lifted = Date.now()
  await protect(tenant, id, false)
  for (let phase = 'ready'; phase !== 'deleted'; ) {
    ;({ phase } = await tenant.environment(id))
    const waited = Date.now() - lifted
    assert.ok(phase === 'ready' || waited > 59_000, `${phase} after ${waited} ms`)
    assert.ok(waited < 100_000, `Still ${phase} after ${waited} ms`)
    await sleep(200)
  }
}

/** Protection is a rule of the server, and lifting it is no deletion; `patient` waits for the sweep too, a minute. */
export const protection = async (world: World, patient: boolean): Promise<void> => {
  const tenant = await Tenant.create(world)
  await Promise.all([
    refusedForGood(tenant, 'kept'),
    savedInTheGrace(tenant, 'saved'),
    ...(patient ? [sweptAfterTheGrace(tenant, 'swept')] : []),
  ])
  if (!patient) return
  const deletions = (await tenant.auditEvents()).filter(({ action }) => action === 'delete_environment')
  assert.deepEqual(deletions.map(({ actor, resource_id }) => [actor.split('_')[0], resource_id]).sort(), [
    ['system:ttl', 'app/swept'],
    ['user:usr', 'app/kept'],
    ['user:usr', 'app/saved'],
  ])
}
