import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedResourceStore } from '../../runtime/embedded/embedded-resource-store.ts'
import { DispatchWorld } from '../../testkit/dispatch-world.ts'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { startStandinOperator } from '../../testkit/standin-operator.ts'
import { assertBoundStore } from './assert-bound-store.ts'

describe('a control plane that is given another resource store', () => {
  let world: DispatchWorld
  beforeEach(async () => {
    world = await DispatchWorld.create()
  })
  afterEach(() => world.close())

  it('remembers the first store it met and refuses every other', async () => {
    const { database } = world.controlPlane
    const own = world.client('svc-apiserver')
    const other = new EmbeddedResourceStore({ url: await storeDatabase(), clientName: 'svc-apiserver' })
    world.onClose(() => other.close())
    await assertBoundStore(database, own)
    await assertBoundStore(database, own)
    await assert.rejects(assertBoundStore(database, other), /live in resource store/)
    await assertBoundStore(database, own)
  })

  it('never takes an empty one for deleted environments: nothing is folded, and it is not ready', async () => {
    const standin = startStandinOperator(world.client('svc-operator'))
    world.onClose(() => standin.stop())
    const first = world.replica()
    await first.ready()
    first.wake(await world.requestCreate('kept'))
    await world.until('kept', ({ phase }) => phase === 'ready')
    await first.stop()

    const empty = new EmbeddedResourceStore({ url: await storeDatabase(), clientName: 'svc-apiserver' })
    world.onClose(() => empty.close())
    let ready = false
    const second = world.replica({ store: empty })
    void second.ready().then(() => (ready = true))
    await sleep(1500)
    assert.equal(ready, false)
    assert.equal((await world.rows('kept')).phase, 'ready')
    await second.stop()

    const third = world.replica()
    await third.ready()
    assert.equal((await world.rows('kept')).phase, 'ready')
  })
})
