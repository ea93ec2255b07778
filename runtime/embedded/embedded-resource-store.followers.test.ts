/** Sixteen writers over two store clients, followers that resume at random points, and backends that get killed meanwhile. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import pg from 'pg'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { sized } from '../../testkit/full.ts'
import type { ResourceStore } from '../store/resource-store.ts'
import { uidOf } from '../store/resource-store-fixture.contract.ts'
import { isStoreError } from '../store/store-error.ts'
import { FINALIZER, newWidget, type Widget, widgets } from '../store/widget.contract.ts'
import { EmbeddedResourceStore } from './embedded-resource-store.ts'

const WRITERS = 16
const LAST = 'zz-last'

interface Seen {
  readonly type: string
  readonly object: Widget
}

/** What a writer does, one number a step; a few objects are shared, so writers meet. */
const write = async (
  store: ResourceStore,
  namespace: string,
  choices: readonly number[],
  acknowledged: (version: string) => void,
): Promise<void> => {
  for (const choice of choices) {
    const key = { namespace, name: `object-${choice % 7}` }
    try {
      const current = await store.get(widgets, key)
      if (current === undefined) {
        const finalizers = choice % 2 === 0 ? [FINALIZER] : []
        const labels = { parity: String(choice % 2) }
        const made = await store.create(widgets, newWidget(namespace, key.name, {}, { finalizers, labels }))
        acknowledged(made.metadata.resourceVersion)
      } else if (choice % 11 === 0) await store.delete(widgets, key, uidOf(current))
      else {
        const before = current.metadata.resourceVersion
        const patch =
          current.metadata.deletionTimestamp === undefined
            ? { spec: { serial: 'kept', color: `c${choice}` }, metadata: { labels: { parity: String(choice % 2) } } }
            : { metadata: { finalizers: [] } }
        const after = await store.patch(widgets, key, patch, uidOf(current))
        if (after.metadata.resourceVersion !== before) acknowledged(after.metadata.resourceVersion)
      }
    } catch (error) {
      // Others were faster, or the connection was killed: then nobody promised that the write happened.
      if (!isStoreError(error, 'NotFound', 'AlreadyExists', 'Conflict', 'Invalid', 'Unavailable')) throw error
    }
  }
}

/** Follows from a version to the object LAST, stopping and resuming after as many events as each of `stops` says. */
const follow = async (
  stores: readonly ResourceStore[],
  namespace: string,
  from: string,
  stops: readonly number[],
): Promise<Seen[]> => {
  const seen: Seen[] = []
  let place = from
  for (let turn = 0; ; turn++) {
    const abort = new AbortController()
    let left = stops[turn] ?? Number.POSITIVE_INFINITY
    const options = { from: place, selector: { namespace }, signal: abort.signal }
    for await (const event of stores[turn % stores.length]!.watch(widgets, options)) {
      if (event.type === 'bookmark') {
        place = event.resourceVersion
        continue
      }
      seen.push(event)
      place = event.object.metadata.resourceVersion
      if (event.object.metadata.name === LAST) return seen
      if (--left <= 0) break
    }
  }
}

/** What a list and the events after it add up to. */
const replay = (items: readonly Widget[], seen: readonly Seen[]): Widget[] => {
  const objects = new Map(items.map(item => [item.metadata.name, item]))
  for (const { type, object } of seen) {
    const { name } = object.metadata
    assert.equal(objects.has(name), type !== 'added', `${type} ${name} follows from nothing`)
    if (type === 'deleted') objects.delete(name)
    else objects.set(name, object)
  }
  return [...objects.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
}

const versionsOf = (seen: readonly Seen[]): string[] => seen.map(({ object }) => object.metadata.resourceVersion)

describe('EmbeddedResourceStore under sixteen writers', () => {
  let url: string
  let admin: pg.Client
  const open: EmbeddedResourceStore[] = []
  beforeEach(async () => {
    url = await storeDatabase()
    admin = new pg.Client({ connectionString: url })
    await admin.connect()
    for (const clientName of ['ada', 'bob'])
      open.push(
        new EmbeddedResourceStore({ url, clientName, bookmarkEveryMs: 20, pollEveryMs: 1000, maxConnections: 8 }),
      )
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map(store => store.close()))
    await admin.end()
  })

  const choices = fc.array(fc.nat(10_000), { minLength: 12, maxLength: sized(12, 40), size: 'max' })
  const stops = fc.array(fc.integer({ min: 1, max: 15 }), { maxLength: 12, size: 'max' })
  const plan = fc.record({
    writers: fc.array(choices, { minLength: WRITERS, maxLength: WRITERS }),
    followers: fc.array(stops, { minLength: 4, maxLength: 4 }),
    joinAfterMs: fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 4, maxLength: 4 }),
  })

  /** Runs a plan; `disturb` runs beside the writers until they are done. */
  const check = async (
    { writers, followers, joinAfterMs }: typeof plan extends fc.Arbitrary<infer T> ? T : never,
    namespace: string,
    disturb: (done: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    const start = (await open[0]!.list(widgets, { namespace })).resourceVersion
    const acknowledged: string[] = []
    const done = new AbortController()
    const following = followers.map((one, n) => follow(n % 2 === 0 ? open : open.toReversed(), namespace, start, one))
    const joining = joinAfterMs.map(async (ms, n) => {
      await sleep(ms)
      const store = open[n % open.length]!
      const list = await retried(() => store.list(widgets, { namespace }))
      return { list, seen: await follow([store], namespace, list.resourceVersion, []) }
    })
    const disturbing = disturb(done.signal)
    await Promise.all(
      writers.map((one, n) =>
        write(open[n % open.length]!, namespace, one, version => void acknowledged.push(version)),
      ),
    )
    done.abort()
    await disturbing
    await retried(() => open[1]!.create(widgets, newWidget(namespace, LAST)))

    const logged = await admin.query<{ version: string }>({
      text: 'select version from changes where namespace = $1 and version > $2 order by version',
      values: [namespace, start],
    })
    const log = logged.rows.map(row => row.version)
    const final = (await open[0]!.list(widgets, { namespace })).items
    for (const seen of await Promise.all(following)) {
      assert.deepEqual(versionsOf(seen), log)
      assert.deepEqual(replay([], seen), final)
    }
    for (const { list, seen } of await Promise.all(joining)) {
      assert.deepEqual(
        versionsOf(seen),
        log.filter(version => BigInt(version) > BigInt(list.resourceVersion)),
      )
      assert.deepEqual(replay(list.items, seen), final)
    }
    const logSet = new Set(log)
    for (const version of acknowledged) assert.ok(logSet.has(version), `acknowledged ${version} is lost`)
    assert.ok(acknowledged.length > WRITERS)
  }

  let runs = 0
  it('loses nothing, reorders nothing, and leaves no gap for a follower that resumes at random points', async function () {
    this.timeout(180_000)
    await fc.assert(
      fc.asyncProperty(plan, one => check(one, `run-${++runs}`, async () => undefined)),
      { numRuns: sized(4, 15), endOnFailure: true },
    )
  })

  it('the same while listeners, and the connections of readers and writers, are killed again and again', async function () {
    this.timeout(180_000)
    const kill = async (like: string): Promise<void> => {
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and application_name like $1`,
        [like],
      )
    }
    await fc.assert(
      fc.asyncProperty(plan, one =>
        check(one, `run-${++runs}`, async done => {
          for (let n = 0; !done.aborted; n++) {
            await kill(n % 3 === 0 ? '%' : '% listener')
            await sleep(15)
          }
        }),
      ),
      { numRuns: sized(2, 8), endOnFailure: true },
    )
  })
})

/** A call that the killer may hit: again until it is answered; a creation that had happened is as good. */
const retried = async <T>(call: () => Promise<T>): Promise<T> => {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (!isStoreError(error, 'Unavailable') || attempt > 20) throw error
      await sleep(20)
    }
  }
}
