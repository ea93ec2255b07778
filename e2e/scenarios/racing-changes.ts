import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import type { OperationBody } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** A change past the API, as somebody with kubectl makes it; one that comes too late is no matter. */
const outsidePatch = async (tenant: Tenant, id: string, suspended: boolean): Promise<void> => {
  const resource = await tenant.world.store.get(environmentType, tenant.key(id))
  if (resource === undefined) return
  try {
    await tenant.world.store.patch(
      environmentType,
      tenant.key(id),
      { spec: { suspended } },
      { uid: resource.metadata.uid },
    )
  } catch (error) {
    if (!isStoreError(error, 'NotFound', 'Conflict', 'Invalid')) throw error
  }
}

/** Waits until phase and spec agree and no operation is under way, and says where that is. */
const settled = async (tenant: Tenant, id: string): Promise<string> => {
  const until = Date.now() + 60_000
  for (;;) {
    const resource = await tenant.world.store.get(environmentType, tenant.key(id))
    const wanted = resource?.spec.suspended === true ? 'suspended' : 'ready'
    const { phase } = await tenant.environment(id)
    if (phase === wanted && resource?.status?.observedGeneration === resource?.metadata.generation) return phase
    assert.ok(Date.now() < until, `${id} is ${phase}, its spec wants ${wanted}`)
    await sleep(50)
  }
}

/** Two people and a script pull at one environment: it ends where the last word put it, and every operation ends. */
export const racingChanges = async (world: World, rounds: number): Promise<void> => {
  const tenant = await Tenant.create(world)
  await tenant.createEnvironment('tug')
  await tenant.sql('tug', session => session.rows('create table kept as select 42 as answer'))
  const accepted: OperationBody[] = []
  for (let round = 0; round < rounds; round++) {
    const verbs = ['suspend', 'resume', 'suspend'].sort(() => Math.random() - 0.5)
    await Promise.all([
      ...verbs.map(async (verb, index) => {
        await sleep(Math.random() * 80 * index)
        const answer = await world.api.call<OperationBody>('POST', tenant.path('tug', `/${verb}`))
        assert.ok([202, 409].includes(answer.status), answer.text)
        if (answer.status === 202) accepted.push(answer.body)
      }),
      sleep(Math.random() * 100).then(() => outsidePatch(tenant, 'tug', Math.random() < 0.5)),
    ])
    const ends = await Promise.all(accepted.map(operation => tenant.ended(operation.id)))
    for (const end of ends) if (end.state === 'failed') assert.equal(end.error, 'Overtaken by a later change')
    await settled(tenant, 'tug')
  }
  // Into the middle of one more pull, the deletion: it wins.
  const answers = await Promise.all([
    world.api.call<OperationBody>('POST', tenant.path('tug', '/suspend')),
    outsidePatch(tenant, 'tug', false),
    world.api.expect<OperationBody>(202, 'DELETE', tenant.path('tug')),
  ])
  if (answers[0].status === 202) await tenant.ended(answers[0].body.id)
  await tenant.succeeded(answers[2].id)
  assert.equal(await world.store.get(environmentType, tenant.key('tug')), undefined)
}
