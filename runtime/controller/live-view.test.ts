import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { ManualClock } from '../../testkit/manual-clock.ts'
import type { Thing } from '../../testkit/unreliable-store.ts'
import { StoreError } from '../store/store-error.ts'
import { LiveView } from './live-view.ts'

const KEY = { namespace: 'ns', name: 'one' }

/** What it is does not matter, only which version. */
const thing = (version: number | string, uid = 'u'): Thing => ({
  ...{ apiVersion: 'v1', kind: 'Thing', spec: { value: 0 } },
  metadata: {
    ...{ ...KEY, uid, generation: 1, creationTimestamp: '', finalizers: [], labels: {}, annotations: {} },
    ...{ ownerReferences: [], resourceVersion: String(version) },
  },
})

const setUp = () => {
  const clock = new ManualClock()
  const world: { cached: Thing | undefined; seen: string | undefined; stored: Thing | undefined } = {
    ...{ cached: undefined, seen: undefined, stored: undefined },
  }
  const asked: string[] = []
  const view = new LiveView<Thing>({
    clock,
    cache: { get: () => world.cached },
    seenUpTo: () => world.seen,
    read: async () => world.stored,
    observer: { asked: why => asked.push(why) },
  })
  const see = (version: number | string, object: Thing | undefined = thing(version)): void => {
    world.cached = object
    world.seen = String(version)
  }
  const wrote = (version: number | string, uid?: string) => view.write(KEY, async () => thing(version, uid))
  const lost = (reason: 'Unavailable' | 'Conflict' | 'Invalid' = 'Unavailable') =>
    assert.rejects(view.write(KEY, () => Promise.reject(new StoreError(reason, 'no'))))
  const versionNow = (): string | undefined => view.get(KEY)?.metadata.resourceVersion
  const certainly = async (): Promise<string | undefined> => (await view.certain(KEY))?.metadata.resourceVersion
  return { clock, world, view, asked, see, wrote, lost, versionNow, certainly }
}

describe('a live view', () => {
  it('says what a cache has seen, and what we wrote until the cache has seen that', async () => {
    const { view, see, wrote, versionNow } = setUp()
    assert.equal(versionNow(), undefined)
    see(5)
    await wrote(10)
    assert.equal(versionNow(), '10')
    see(9)
    assert.equal(versionNow(), '10')
    see(12)
    assert.equal(versionNow(), '12')
    assert.equal(view.size, 0)
  })

  it('believes a cache that has seen far enough and knows nothing of it: it is gone', async () => {
    const { world, wrote, versionNow } = setUp()
    await wrote(10)
    world.seen = '11'
    assert.equal(versionNow(), undefined)
  })

  it('compares numbers, not texts, of any length', async () => {
    const { see, wrote, versionNow } = setUp()
    await wrote('9007199254740993')
    see('9007199254740992')
    assert.equal(versionNow(), '9007199254740993')
    see('10000000000000000')
    assert.equal(versionNow(), '10000000000000000')
  })

  it('keeps the newest of several writes, in whatever order their answers come', async () => {
    const { see, wrote, versionNow } = setUp()
    await wrote(12)
    await wrote(11)
    see(11)
    assert.equal(versionNow(), '12')
  })

  it('never waits for a version that is no number, on either side', async () => {
    const { see, wrote, versionNow } = setUp()
    see(1)
    await wrote('opaque')
    assert.equal(versionNow(), '1')
    await wrote(10)
    see('opaque')
    assert.equal(versionNow(), 'opaque')
  })

  it('asks the store after a write whose answer was lost or that met a newer version, not after a clear no', async () => {
    const { world, asked, see, lost, certainly } = setUp()
    see(5)
    world.stored = thing(7)
    await lost('Invalid')
    assert.equal(await certainly(), '5')
    await lost()
    assert.equal(await certainly(), '7')
    world.stored = thing(8)
    assert.equal(await certainly(), '7', 'it was asked once')
    await lost('Conflict')
    assert.equal(await certainly(), '8')
    assert.deepEqual(asked, ['answer_lost', 'answer_lost'])
  })

  it('does not believe an answer from before a write that was made while it was asked', async () => {
    const { view, wrote, versionNow } = setUp()
    const { promise, resolve } = Promise.withResolvers<Thing>()
    const slow = new LiveView<Thing>({
      ...{ cache: { get: () => undefined }, seenUpTo: () => undefined },
      read: () => promise,
    })
    const reading = slow.read(KEY)
    await slow.write(KEY, async () => thing(12))
    resolve(thing(11))
    assert.equal((await reading)?.metadata.resourceVersion, '12')
    assert.equal(slow.get(KEY)?.metadata.resourceVersion, '12')
    await wrote(1)
    assert.equal(versionNow(), view.get(KEY)?.metadata.resourceVersion)
  })

  it('says that something is gone from when the store says so, whatever the cache still shows, and not of its successor', async () => {
    const { view, see, versionNow } = setUp()
    see(5)
    assert.equal(await view.read(KEY), undefined)
    assert.equal(versionNow(), undefined)
    see(9, thing(9, 'another'))
    assert.equal(versionNow(), '9')
  })

  it('does not take for gone what was made while the store was asked', async () => {
    const asking = Promise.withResolvers<undefined>()
    const cached: { object?: Thing } = {}
    const view = new LiveView<Thing>({
      cache: { get: () => cached.object },
      seenUpTo: () => cached.object?.metadata.resourceVersion,
      read: () => asking.promise,
    })
    const reading = view.read(KEY)
    cached.object = thing(7)
    asking.resolve(undefined)
    assert.equal(await reading, undefined)
    assert.equal(view.get(KEY)?.metadata.resourceVersion, '7')
  })

  it('keeps what was written while the store was asked and said that there was nothing', async () => {
    const asking = Promise.withResolvers<undefined>()
    const view = new LiveView<Thing>({
      cache: { get: () => undefined },
      seenUpTo: () => undefined,
      read: () => asking.promise,
    })
    const reading = view.read(KEY)
    await view.write(KEY, async () => thing(12))
    asking.resolve(undefined)
    assert.equal((await reading)?.metadata.resourceVersion, '12')
    assert.equal(view.get(KEY)?.metadata.resourceVersion, '12')
  })

  it('says that something goes from when we asked for it, and only of that one', async () => {
    const { view, see } = setUp()
    see(5)
    const before = Date.now()
    view.deletionAsked(KEY, 'u')
    const at = Date.parse(view.get(KEY)?.metadata.deletionTimestamp ?? '')
    assert.ok(before <= at && at <= Date.now(), 'on the wall’s clock, as everybody else’s')
    see(9, thing(9, 'another'))
    assert.equal(view.get(KEY)?.metadata.deletionTimestamp, undefined)
  })

  it('remembers nothing beside a cache that has caught up, though nobody asks for it again', async () => {
    const { view, see, wrote, world } = setUp()
    await wrote(10)
    assert.equal(view.size, 1)
    see(10)
    view.cacheChanged(KEY)
    assert.equal(view.size, 0)
    await wrote(10)
    assert.equal(view.size, 0, 'its answer came after the watch')
    view.deletionAsked(KEY, 'u')
    assert.equal(view.size, 1)
    view.isGone(KEY, 'u')
    world.cached = undefined
    view.cacheChanged(KEY)
    assert.equal(view.size, 0)
    view.deletionAsked(KEY, 'u')
    view.isGone(KEY, 'u')
    assert.equal(await view.read(KEY), undefined)
    assert.equal(view.size, 0, 'it was gone before')
  })

  it('asks the store when the cache is behind for five seconds: it may hang', async () => {
    const { clock, world, asked, see, wrote, certainly } = setUp()
    see(5)
    await wrote(10)
    world.stored = thing(14)
    clock.advanceNow(4_999)
    assert.equal(await certainly(), '10')
    clock.advanceNow(1)
    assert.equal(await certainly(), '14')
    see(12)
    assert.equal(await certainly(), '14', 'what was read counts as seen')
    assert.deepEqual(asked, ['cache_behind'])
  })

  it('gives in to a store that was set back: what is read there counts, not what was written', async () => {
    const { clock, world, see, wrote, certainly } = setUp()
    await wrote(1000)
    world.stored = thing(7)
    see(7)
    clock.advanceNow(5_000)
    assert.equal(await certainly(), '7')
    see(8)
    assert.equal(await certainly(), '8')
  })

  it('never shows less than its own last write, never goes back, and ends as the store, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('write' as const), answered: fc.boolean() }),
      fc.record({ do: fc.constant('foreignWrite' as const) }),
      fc.record({ do: fc.constant('see' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 6_000 }) }),
      fc.record({ do: fc.constant('look' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        const { clock, world, see, wrote, lost, certainly } = setUp()
        let [version, seen, own, believed] = [1, 1, 0, 0]
        see(1)
        for (const one of steps)
          if (one.do === 'write') {
            own = ++version
            world.stored = thing(version)
            await (one.answered ? wrote(version) : lost())
          } else if (one.do === 'foreignWrite') world.stored = thing(++version)
          else if (one.do === 'see') see((seen = Math.max(seen, Math.floor(seen + (version - seen) * one.share))))
          else if (one.do === 'pass') clock.advanceNow(one.ms)
          else {
            const acted = Number(await certainly())
            assert.ok(acted >= own, `acted on ${acted}, own last write was ${own}`)
            assert.ok(acted >= believed, `went back from ${believed} to ${acted}`)
            believed = acted
          }
        see(version)
        assert.equal(await certainly(), String(version))
      }),
      { numRuns: sized(300, 20_000) },
    )
  })
})
