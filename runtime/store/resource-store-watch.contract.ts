/** The part of the ResourceStore contract about watches. */
import assert from 'node:assert/strict'
import { keyOf } from '../../lib/model/resource.ts'
import type { ResourceStore, Selector, WatchEvent } from './resource-store.ts'
import { type ResourceStoreFixture, rejectsWith, uidOf } from './resource-store-fixture.contract.ts'
import { FINALIZER, newWidget, type Widget, widgets } from './widget.contract.ts'

/** Follows a watch in the background; `events` holds all but bookmarks. */
const follow = (store: ResourceStore, from: string, selector: Selector) => {
  const abort = new AbortController()
  const events: { type: string; object: Widget }[] = []
  const bookmarks: string[] = []
  let check: () => void = () => undefined
  const take = (event: WatchEvent<Widget>): void => {
    if (event.type === 'bookmark') bookmarks.push(event.resourceVersion)
    else events.push(event)
    check()
  }
  const ended = (async () => {
    for await (const event of store.watch(widgets, { from, selector, signal: abort.signal })) take(event)
  })()
  ended.catch(() => undefined)
  const until = async (holds: () => boolean): Promise<void> =>
    Promise.race([
      ended.then(() => assert.fail('the watch ended early')),
      new Promise<void>(resolve => {
        check = () => {
          if (holds()) resolve()
        }
        check()
      }),
    ])
  return {
    events,
    bookmarks,
    ended,
    until,
    /** Waits for this many events, then stops: one too many would have come before a later change of the same test. */
    first: async (count: number): Promise<{ type: string; object: Widget }[]> => {
      await until(() => events.length >= count)
      return events
    },
    stop: async () => {
      abort.abort()
      await ended
    },
  }
}

const short = ({ type, object }: { type: string; object: Widget }): string => `${type} ${object.metadata.name}`

export const describeWatch = (fixture: () => ResourceStoreFixture): void => {
  describe('watch', () => {
    let store: ResourceStore
    let other: ResourceStore
    let ns: string
    beforeEach(async () => {
      store = await fixture().connect('first')
      other = await fixture().connect('second')
      ns = await fixture().namespace()
    })
    const create = (name: string, rest: Parameters<typeof newWidget>[3] = {}): Promise<Widget> =>
      store.create(widgets, newWidget(ns, name, {}, rest))
    const head = async (): Promise<string> => (await store.list(widgets, { namespace: ns })).resourceVersion

    it('tells every change after a list, in order, with the object as it then was', async () => {
      const before = await create('before')
      const watch = follow(store, await head(), { namespace: ns })
      const made = await create('made', { finalizers: [FINALIZER] })
      const patched = await other.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
      const told = await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, uidOf(made))
      await store.delete(widgets, keyOf(before), uidOf(before))
      await store.delete(widgets, keyOf(made), uidOf(made))
      const deleting = (await store.get(widgets, keyOf(made)))!
      const gone = await store.patch(widgets, keyOf(made), { metadata: { finalizers: [] } }, uidOf(made))
      const events = await watch.first(6)
      await watch.stop()
      assert.deepEqual(events.map(short), [
        'added made',
        'modified made',
        'modified made',
        'deleted before',
        'modified made',
        'deleted made',
      ])
      assert.deepEqual(
        [0, 1, 2, 4].map(n => events[n]!.object),
        [made, patched, told, deleting],
      )
      assert.equal(events[5]!.object.metadata.uid, gone.metadata.uid)
      const versions = events.map(event => BigInt(event.object.metadata.resourceVersion))
      assert.ok(versions.every((version, n) => n === 0 || version > versions[n - 1]!))
    })

    it('resumes from any version: exactly what came after it, none twice, none missing', async () => {
      const start = await head()
      const made = await create('one')
      const versions = [made.metadata.resourceVersion]
      for (let size = 1; size <= 5; size++)
        versions.push(
          (await other.patch(widgets, keyOf(made), { spec: { size } }, uidOf(made))).metadata.resourceVersion,
        )
      for (const [index, from] of [start, ...versions.slice(0, -1)].entries()) {
        const watch = follow(store, from, { namespace: ns })
        const events = await watch.first(versions.length - index)
        await watch.stop()
        assert.deepEqual(
          events.map(event => event.object.metadata.resourceVersion),
          versions.slice(index),
        )
      }
    })

    it('a patch that changes nothing is no event', async () => {
      const made = await create('same')
      const watch = follow(store, await head(), { namespace: ns })
      await store.patch(widgets, keyOf(made), { spec: { color: 'grey' } }, uidOf(made))
      await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, uidOf(made))
      await store.patchStatus(widgets, keyOf(made), { phase: 'a' }, uidOf(made))
      await create('last')
      assert.deepEqual((await watch.first(2)).map(short), ['modified same', 'added last'])
      await watch.stop()
    })

    it('with a label selector, starting to match is added, no longer matching is deleted', async () => {
      const labels = { watched: 'yes' }
      const watch = follow(store, await head(), { namespace: ns, labels })
      const label = (widget: Widget, watched: string | null): Promise<Widget> =>
        store.patch(widgets, keyOf(widget), { metadata: { labels: { watched } } }, uidOf(widget))
      const never = await create('never')
      const always = await create('always', { labels })
      await label(never, 'no')
      const joins = await create('joins')
      await label(joins, 'yes')
      await store.patchStatus(widgets, keyOf(joins), { phase: 'a' }, uidOf(joins))
      await label(joins, null)
      await store.patchStatus(widgets, keyOf(joins), { phase: 'unseen' }, uidOf(joins))
      await store.delete(widgets, keyOf(joins), uidOf(joins))
      await store.delete(widgets, keyOf(never), uidOf(never))
      await store.delete(widgets, keyOf(always), uidOf(always))
      await create('last', { labels })
      assert.deepEqual((await watch.first(6)).map(short), [
        'added always',
        'added joins',
        'modified joins',
        'deleted joins',
        'deleted always',
        'added last',
      ])
      await watch.stop()
    })

    it('sees only its namespace; without one, all', async () => {
      const elsewhere = await fixture().namespace()
      const from = await head()
      const [here, everywhere] = [follow(store, from, { namespace: ns }), follow(store, from, {})]
      await store.create(widgets, newWidget(elsewhere, 'there'))
      await create('here')
      assert.deepEqual((await here.first(1)).map(short), ['added here'])
      assert.deepEqual((await everywhere.first(2)).map(short), ['added there', 'added here'])
      await Promise.all([here.stop(), everywhere.stop()])
    })

    it('several watchers of several clients see the same', async () => {
      const from = await head()
      const watches = [store, store, other, other].map(client => follow(client, from, { namespace: ns }))
      const names = Array.from({ length: 10 }, (_, n) => `many-${n}`)
      await Promise.all(names.map(name => create(name)))
      const seen = await Promise.all(watches.map(async watch => (await watch.first(10)).map(short)))
      await Promise.all(watches.map(watch => watch.stop()))
      assert.deepEqual([...seen[0]!].sort(), names.map(name => `added ${name}`).sort())
      for (const one of seen) assert.deepEqual(one, seen[0])
    })

    it('a quiet watch gets bookmarks, and a watch may resume from one', async function () {
      this.timeout(fixture().bookmarkWithinMs + 20_000)
      const made = await create('quiet')
      const watch = follow(store, made.metadata.resourceVersion, { namespace: ns })
      await watch.until(() => watch.bookmarks.length > 0)
      await watch.stop()
      const mark = watch.bookmarks[0]!
      assert.ok(BigInt(mark) >= BigInt(made.metadata.resourceVersion))
      await create('later')
      const resumed = follow(store, mark, { namespace: ns })
      assert.deepEqual((await resumed.first(1)).map(short), ['added later'])
      await resumed.stop()
    })

    it('is Gone from a version older than the log reaches back, and works from a fresh list', async function () {
      this.timeout(120_000)
      const made = await create('old')
      await store.patch(widgets, keyOf(made), { spec: { size: 1 } }, uidOf(made))
      await fixture().expireVersions()
      const tooOld = follow(store, made.metadata.resourceVersion, { namespace: ns })
      await rejectsWith(tooOld.ended, 'Gone')
      const watch = follow(store, await head(), { namespace: ns })
      await create('new')
      assert.deepEqual((await watch.first(1)).map(short), ['added new'])
      await watch.stop()
    })

    it('is Gone from a version that was never reached, as after a restore', async () => {
      const ahead = String(BigInt(await head()) + 1_000_000n)
      await rejectsWith(follow(store, ahead, { namespace: ns }).ended, 'Gone')
    })

    it('ends at once when aborted: before it starts, between events and while waiting', async () => {
      const from = await head()
      const aborted = store.watch(widgets, { from, signal: AbortSignal.abort() })
      for await (const event of aborted) assert.fail(`unexpected ${event.type}`)
      await create('one')
      await create('two')
      const abort = new AbortController()
      const seen: string[] = []
      for await (const event of store.watch(widgets, { from, selector: { namespace: ns }, signal: abort.signal })) {
        seen.push(event.type)
        abort.abort()
      }
      assert.deepEqual(seen, ['added'])
      const waiting = follow(store, await head(), { namespace: ns })
      await new Promise(resolve => setTimeout(resolve, 50))
      await waiting.stop()
      assert.deepEqual(waiting.events, [])
    })
  })
}
