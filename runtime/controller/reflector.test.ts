import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { ManualClock, settle } from '../../testkit/manual-clock.ts'
import { type Thing, thingType, UnreliableStore } from '../../testkit/unreliable-store.ts'
import { silentLog } from '../log/log.ts'
import { StoreError } from '../store/store-error.ts'
import { Cache } from './cache.ts'
import { Reflector, type ReflectorOptions } from './reflector.ts'

const unavailable = (): StoreError => new StoreError('Unavailable', 'HTTP 500')

/** A reflector on an unreliable store, and what its cache's handlers have learned. */
const setUp = (options: Partial<ReflectorOptions<Thing>> = {}, store = new UnreliableStore()) => {
  const clock = new ManualClock()
  const cache = new Cache<Thing>({ log: silentLog })
  const learned = new Map<string, number>()
  cache.subscribe(({ type, object: { metadata, spec } }) => {
    assert.equal(type === 'added', !learned.has(metadata.name), `${type} ${metadata.name} does not follow from before`)
    if (type === 'deleted') learned.delete(metadata.name)
    else learned.set(metadata.name, spec.value)
  })
  const reflector = new Reflector<Thing>({
    store,
    type: thingType,
    sink: cache,
    log: silentLog,
    clock,
    random: () => 1,
    ...options,
  })
  const values = (): Record<string, number> =>
    Object.fromEntries(cache.list().map(({ metadata, spec }) => [metadata.name, spec.value]))
  const truth = (): Record<string, number> =>
    Object.fromEntries([...store.objects].map(([name, { spec }]) => [name, spec.value]))
  return { clock, store, cache, reflector, learned, values, truth }
}

describe('Reflector', () => {
  it('lists, then follows every change without listing again', async () => {
    const { store, cache, reflector, values } = setUp()
    store.put('a', 1)
    reflector.start()
    await cache.waitForSync()
    await settle()
    store.put('b', 2)
    store.put('a', 3)
    store.put('c', 4)
    store.remove('c')
    await settle()
    assert.deepEqual(values(), { a: 3, b: 2 })
    assert.equal(store.lists, 1)
    assert.equal(reflector.health().state, 'watching')
    assert.equal(reflector.health().resourceVersion, '100005')
    await reflector.stop()
    assert.equal(reflector.health().state, 'stopped')
  })

  it('keeps trying while lists fail, later each time, and is synced once one works', async () => {
    const { store, clock, cache, reflector } = setUp()
    store.listFaults.push(...Array.from({ length: 8 }, unavailable))
    reflector.start()
    await settle()
    const gaps: number[] = []
    for (let last = 0; store.lists < 9; last = clock.now()) {
      const before = store.lists
      while (store.lists === before) await clock.advance(100)
      gaps.push(Math.round((clock.now() - last) / 100) * 100)
    }
    assert.deepEqual(gaps, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
    assert.equal(cache.synced, true)
    assert.equal(reflector.health().failingMs, 0)
    await reflector.stop()
  })

  it('shows how long it fails and why', async () => {
    const { store, clock, reflector } = setUp()
    reflector.start()
    await settle()
    store.watchFaults.push(...Array.from({ length: 100 }, () => 'error' as const))
    store.break('error')
    await clock.advance(300_000)
    const { state, failingMs, lastError, synced } = reflector.health()
    assert.equal(state, 'backoff')
    assert.ok(failingMs >= 299_000, `${failingMs}`)
    assert.match(lastError ?? '', /reset/)
    assert.equal(synced, true)
    await reflector.stop()
  })

  it('gives up a list that does not answer', async () => {
    const { store, clock, cache, reflector } = setUp({ listDeadlineMs: 5_000 })
    store.listFaults.push('hang')
    reflector.start()
    await clock.advance(4_999)
    assert.equal(store.lists, 1)
    await clock.advance(1_000)
    assert.equal(cache.synced, true)
    await reflector.stop()
  })

  it('resumes after a dropped stream from where it was, missing and repeating nothing', async () => {
    const { store, clock, reflector, values, truth } = setUp()
    reflector.start()
    await settle()
    for (const fault of ['error', 'close', 'error'] as const) {
      store.put('a', store.watches)
      await settle()
      store.break(fault)
      store.put('b', store.watches)
      store.put(`c${store.watches}`, 1)
      await clock.advance(5_000)
      assert.deepEqual(values(), truth())
    }
    assert.equal(store.lists, 1)
    assert.equal(store.watches, 4)
    await reflector.stop()
  })

  it('opens a silent stream anew at once, although the old one never ends', async () => {
    const { store, clock, reflector, values } = setUp({ idleTimeoutMs: 90_000 })
    reflector.start()
    await settle()
    store.break('stall')
    await settle()
    store.put('a', 1)
    await clock.advance(89_000)
    assert.deepEqual(values(), {})
    await clock.advance(1_001)
    assert.deepEqual(values(), { a: 1 })
    assert.equal(store.lists, 1)
    assert.deepEqual(
      store.signals.map(({ aborted }) => aborted),
      [true, false],
      'the store was told to let the old one go',
    )
    await reflector.stop()
    assert.equal(store.signals[1]?.aborted, true)
  })

  it('is kept alive by bookmarks alone', async () => {
    const { store, clock, reflector } = setUp({ idleTimeoutMs: 90_000 })
    reflector.start()
    for (let minute = 0; minute < 10; minute += 1) {
      await clock.advance(60_000)
      store.bookmark()
    }
    assert.equal(store.watches, 1)
    await reflector.stop()
  })

  it('lists again when its version is gone, and learns of deletions that no watch brought', async () => {
    const { store, clock, reflector, learned, values } = setUp()
    store.put('a', 1)
    store.put('b', 2)
    reflector.start()
    await settle()
    store.watchFaults.push('error')
    store.break('error')
    await settle()
    store.remove('a')
    store.put('c', 3)
    store.compact()
    await clock.advance(10_000)
    assert.deepEqual(values(), { b: 2, c: 3 })
    assert.deepEqual(Object.fromEntries(learned), { b: 2, c: 3 })
    assert.equal(store.lists, 2)
    await reflector.stop()
  })

  it('does not spin when every stream ends at once', async () => {
    const { store, clock, reflector } = setUp()
    store.watchFaults.push(...Array.from({ length: 1000 }, () => 'close' as const))
    reflector.start()
    await clock.advance(60_000)
    assert.ok(store.watches < 10, `${store.watches} watches in a minute`)
    await reflector.stop()
  })

  it('clears the back-off after a healthy time only', async () => {
    const { store, clock, reflector } = setUp({ idleTimeoutMs: 1_000_000 })
    store.listFaults.push(...Array.from({ length: 5 }, unavailable))
    reflector.start()
    await clock.advance(60_000)
    assert.equal(store.watches, 1)
    store.break('error')
    await clock.advance(20_000)
    assert.equal(store.watches, 1, 'it failed five times a minute ago: 25.6 s')
    await clock.advance(10_000)
    assert.equal(store.watches, 2)
    await clock.advance(121_000)
    store.break('error')
    await clock.advance(900)
    assert.equal(store.watches, 3, 'it was well for two minutes: 0.8 s')
    await reflector.stop()
  })

  it('takes nothing for granted when versions fall: lists again', async () => {
    const { store, clock, reflector, values } = setUp()
    store.put('a', 1)
    store.put('b', 2)
    reflector.start()
    await settle()
    store.rewind(50)
    store.put('a', 7)
    await clock.advance(5_000)
    assert.deepEqual(values(), { a: 7, b: 2 })
    store.put('b', 8)
    await clock.advance(1)
    assert.deepEqual(values(), { a: 7, b: 8 })
    assert.equal(store.lists, 2)
    await reflector.stop()
  })

  it('sees a change again that its sink could not take in', async () => {
    const store = new UnreliableStore()
    const taken: string[] = []
    let refusals = 2
    const sink = {
      replace: () => 0,
      apply: (_: string, object: Thing) => {
        if (refusals-- > 0) throw new Error('not now')
        taken.push(object.metadata.name)
      },
    }
    const { clock, reflector } = setUp({ sink }, store)
    reflector.start()
    await settle()
    store.put('a', 1)
    store.put('b', 2)
    await clock.advance(10_000)
    assert.deepEqual(taken, ['a', 'b'])
    await reflector.stop()
  })

  it('stops at once in each of its states', async () => {
    for (const prepare of [
      (store: UnreliableStore) => store.listFaults.push('hang'),
      (store: UnreliableStore) => store.listFaults.push(unavailable()),
      (store: UnreliableStore) => store.watchFaults.push('stall'),
      () => undefined,
    ]) {
      const { store, clock, reflector } = setUp()
      prepare(store)
      reflector.start()
      await settle()
      await reflector.stop()
      assert.equal(clock.pending, 0)
    }
  })

  it('ends with the truth, whatever the store does in between', async () => {
    const FURTHER_THAN_ANY_RUN = 100

    const name = fc.constantFrom('a', 'b', 'c', 'd')
    const fault = fc.constantFrom('error' as const, 'gone' as const, 'close' as const, 'stall' as const)
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name, value: fc.nat(9) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), name }) },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 100_000 }) }),
      },
      fc.record({ do: fc.constant('break' as const), fault }),
      fc.record({ do: fc.constant('failWatch' as const), fault }),
      fc.record({ do: fc.constant('failList' as const), hang: fc.boolean() }),
      fc.record({ do: fc.constantFrom('compact' as const, 'rewind' as const, 'settle' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async steps => {
        const { store, clock, reflector, learned, values, truth } = setUp()
        reflector.start()
        for (const now of steps) {
          if (now.do === 'put') store.put(now.name, now.value)
          else if (now.do === 'remove') store.remove(now.name)
          else if (now.do === 'advance') await clock.advance(now.ms)
          else if (now.do === 'break') store.break(now.fault)
          else if (now.do === 'failWatch') store.watchFaults.push(now.fault)
          else if (now.do === 'failList') store.listFaults.push(now.hang ? 'hang' : unavailable())
          else if (now.do === 'compact') store.compact()
          else if (now.do === 'rewind') store.rewind(FURTHER_THAN_ANY_RUN)
          else await settle()
          assert.deepEqual(Object.fromEntries(learned), values())
        }
        store.listFaults.length = 0
        store.watchFaults.length = 0
        // Rewinds go further than a run comes: a store that catches up with the version last seen looks as if it never fell.
        store.put('last', 1)
        await clock.advance(200_000)
        assert.deepEqual(values(), truth())
        assert.deepEqual(Object.fromEntries(learned), truth())
        await reflector.stop()
        assert.equal(clock.pending, 0)
      }),
      { numRuns: sized(60, 2_000) },
    )
  }).timeout(180_000)
})
