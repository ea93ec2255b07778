import assert from 'node:assert/strict'
import type { EmbeddedResourceStore } from '../../runtime/embedded/embedded-resource-store.ts'
import { DispatchWorld, USER } from '../../testkit/dispatch-world.ts'
import { type StandinOperator, startStandinOperator } from '../../testkit/standin-operator.ts'

describe('dispatch and projection', () => {
  let world: DispatchWorld
  let operator: StandinOperator
  let store: EmbeddedResourceStore

  beforeEach(async () => {
    world = await DispatchWorld.create()
    store = world.client('svc-operator')
    operator = startStandinOperator(store)
    world.onClose(() => operator.stop())
  })
  afterEach(() => world.close())

  it('carries a life from create to delete, each operation once, and writes nothing that nobody did', async () => {
    const service = world.replica()
    await service.ready()
    const row = await world.requestCreate('pr-1')
    service.wake(row)
    const created = await world.until('pr-1', ({ phase }) => phase === 'ready')
    assert.deepEqual(created.operations, [
      {
        kind: 'create_environment',
        state: 'succeeded',
        actor: USER,
        error: null,
        result: { environment_id: 'pr-1', phase: 'ready', postgres_major: 17 },
      },
    ])
    await world.request('pr-1', 'suspend')
    service.wake(row)
    await world.until('pr-1', ({ phase, operations }) => phase === 'suspended' && operations[1]?.state === 'succeeded')
    await world.request('pr-1', 'resume')
    service.wake(row)
    await world.until('pr-1', ({ phase, operations }) => phase === 'ready' && operations[2]?.state === 'succeeded')
    await world.requestUpdate('pr-1', true)
    await world.requestUpdate('pr-1', false)
    await world.request('pr-1', 'delete')
    service.wake(row)
    const deleted = await world.until('pr-1', ({ phase }) => phase === 'deleted')
    assert.deepEqual(
      deleted.operations.map(({ kind, state }) => `${kind} ${state}`),
      ['create_environment', 'suspend_environment', 'resume_environment', 'delete_environment'].map(
        kind => `${kind} succeeded`,
      ),
    )
    assert.deepEqual(deleted.operations[3]?.result, { environment_id: 'pr-1', phase: 'deleted', retained: false })
    assert.deepEqual(await world.audit(), [])
    assert.equal(await world.resource(store, 'pr-1'), undefined)
  })
})
