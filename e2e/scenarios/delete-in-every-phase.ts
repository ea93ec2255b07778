import assert from 'node:assert/strict'
import { environmentType } from '../../crds/environment-type.ts'
import type { OperationBody } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** How an environment gets to where it is deleted from, by the phase's name; what was under way ends as superseded. */
const BEFORE: Readonly<Record<string, (tenant: Tenant, id: string) => Promise<OperationBody | undefined>>> = {
  requested: async (tenant, id) => (await tenant.requestEnvironment(id)).body,
  provisioning: async (tenant, id) => {
    const { body } = await tenant.requestEnvironment(id)
    await tenant.inPhase(id, 'provisioning', 'ready')
    return body
  },
  ready: async (tenant, id) => {
    await tenant.createEnvironment(id)
    return undefined
  },
  suspending: async (tenant, id) => {
    await tenant.createEnvironment(id)
    return tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(id, '/suspend'))
  },
  suspended: async (tenant, id) => {
    await tenant.createEnvironment(id)
    await tenant.run('suspend', id)
    return undefined
  },
  resuming: async (tenant, id) => {
    await tenant.createEnvironment(id)
    await tenant.run('suspend', id)
    return tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(id, '/resume'))
  },
  updating: async (tenant, id) => {
    await tenant.createEnvironment(id)
    await tenant.world.breakPostgres(tenant.key(id))
    await tenant.inPhase(id, 'updating')
    return undefined
  },
  // An id has no underscore.
  'failed-recoverable': async (tenant, id) => {
    await tenant.createEnvironment(id)
    await tenant.world.breakPostgres(tenant.key(id))
    await tenant.inPhase(id, 'failed_recoverable')
    return undefined
  },
  // What is under way is a resume that cannot succeed.
  'resuming-in-vain': async (tenant, id) => {
    await tenant.createEnvironment(id)
    await tenant.world.breakPostgres(tenant.key(id))
    await tenant.inPhase(id, 'failed_recoverable')
    const operation = await tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(id, '/resume'))
    await tenant.inPhase(id, 'updating')
    return operation
  },
}

/** Whatever an environment is doing, a deletion comes through, and the id is free again. */
export const deleteInEveryPhase = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  await Promise.all(
    Object.entries(BEFORE).map(async ([id, before]) => {
      const underWay = await before(tenant, id)
      await tenant.run('delete', id)
      assert.equal((await tenant.environment(id)).phase, 'deleted')
      assert.equal(await world.store.get(environmentType, tenant.key(id)), undefined)
      if (underWay !== undefined) {
        const ended = await tenant.ended(underWay.id)
        if (ended.state === 'failed') assert.equal(ended.error, 'Superseded by deletion', id)
      }
      const again = await world.api.call<{ code: string }>('DELETE', tenant.path(id))
      assert.deepEqual([again.status, again.body.code], [409, 'invalid_phase'])
      await tenant.createEnvironment(id)
      await tenant.run('delete', id)
    }),
  )
}
