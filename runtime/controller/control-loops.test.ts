import assert from 'node:assert/strict'
import { ManualClock, settle } from '../../testkit/manual-clock.ts'
import { type Thing, thingType, UnreliableStore } from '../../testkit/unreliable-store.ts'
import { silentLog } from '../log/log.ts'
import { StoreError } from '../store/store-error.ts'
import { Cache } from './cache.ts'
import { startControlLoops } from './control-loops.ts'
import { Controller } from './controller.ts'
import { Reflector } from './reflector.ts'

const setUp = (store = new UnreliableStore()) => {
  const clock = new ManualClock()
  const shared = { log: silentLog, clock, random: () => 1 }
  const cache = new Cache<Thing>({ log: silentLog })
  const reflector = new Reflector<Thing>({ ...shared, store, type: thingType, sink: cache })
  const reconciled: string[] = []
  const controller = new Controller({
    ...shared,
    name: 'things',
    reconcile: async key => {
      reconciled.push(`${key.name}=${cache.get(key)?.spec.value}`)
    },
  })
  controller.watch(cache)
  const loops = startControlLoops({ reflectors: [reflector], caches: [cache], controllers: [controller] })
  return { store, clock, loops, reconciled, controller }
}

describe('startControlLoops', () => {
  it('starts no worker before the caches are synced, then serves what they hold', async () => {
    const store = new UnreliableStore()
    store.put('a', 1)
    store.listFaults.push(new StoreError('Unavailable', 'not yet'))
    const { loops, clock, reconciled, controller } = setUp(store)
    controller.enqueue({ namespace: 'n', name: 'early' })
    await settle()
    assert.deepEqual(reconciled, [])
    await clock.advance(800)
    await loops.ready
    await settle()
    assert.deepEqual(reconciled, ['early=undefined', 'a=1'])
    assert.deepEqual(
      loops.health().map(({ name, state, synced }) => [name, state, synced]),
      [['Thing', 'watching', true]],
    )
    assert.equal(await loops.stop(), true)
    assert.equal(clock.pending, 0)
  })

  it('can be stopped before it is ready: nobody works, and who waits is told', async () => {
    const store = new UnreliableStore()
    store.listFaults.push('hang')
    const { loops, reconciled, clock } = setUp(store)
    await settle()
    assert.equal(await loops.stop(), true)
    await assert.rejects(loops.ready, /stopped before they were ready/)
    assert.deepEqual(reconciled, [])
    assert.equal(clock.pending, 0)
  })

  it('reconciles nothing after it has stopped', async () => {
    const { loops, reconciled, store, clock } = setUp()
    await loops.ready
    await loops.stop()
    store.put('a', 1)
    await clock.advance(60_000)
    assert.deepEqual(reconciled, [])
  })
})
