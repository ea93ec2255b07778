import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { DispatchWorld, keyOfEnvironment } from '../../testkit/dispatch-world.ts'
import { startStandinOperator } from '../../testkit/standin-operator.ts'
import { rowsAgree } from './rows-agree.ts'

describe('rowsAgree', () => {
  let world: DispatchWorld
  beforeEach(async () => {
    world = await DispatchWorld.create()
    const operator = startStandinOperator(world.client('svc-operator'))
    world.onClose(() => operator.stop())
  })
  afterEach(() => world.close())

  const agree = (signal = new AbortController().signal) =>
    rowsAgree(world.client('svc-apiserver'), world.database, { signal, log: silentLog })

  it('waits until what the operator said was folded, however late that happens', async () => {
    await agree()
    const service = world.replica()
    service.wake(await world.requestCreate('main'))
    await world.until('main', ({ phase }) => phase === 'ready')
    await agree()
    await service.stop()
    const store = world.client('svc-operator')
    const resource = await world.resource(store, 'main')
    assert.ok(resource)
    const { uid } = resource.metadata
    await store.patchStatus(environmentType, keyOfEnvironment('main'), { phase: 'updating' }, { uid })
    let agrees = false
    const agreed = agree().then(() => (agrees = true))
    await sleep(200)
    assert.equal(agrees, false, 'the row still says ready')
    const successor = world.replica()
    await agreed
    assert.equal((await world.rows('main')).phase, 'updating')
    await successor.stop()
  })

  it('waits for nothing that has no row, and no longer than it is asked to', async () => {
    const kubectl = world.client('kubectl')
    const spec = { organizationId: 'acme', projectId: 'none', environmentId: 'main', kind: 'staging' } as const
    await kubectl.create(environmentType, { namespace: 'svc-acme-none', name: 'acme.none.main', spec })
    await agree()
    const service = world.replica()
    service.wake(await world.requestCreate('main'))
    await world.until('main', ({ phase }) => phase === 'ready')
    await service.stop()
    const { uid } = (await world.resource(kubectl, 'main'))!.metadata
    await kubectl.patchStatus(environmentType, keyOfEnvironment('main'), { phase: 'updating' }, { uid })
    await assert.rejects(agree(AbortSignal.timeout(50)))
  })
})
