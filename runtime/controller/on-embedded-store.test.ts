import assert from 'node:assert/strict'
import { Client } from 'pg'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { sized } from '../../testkit/full.ts'
import { type Thing, thingType } from '../../testkit/unreliable-store.ts'
import { EmbeddedResourceStore } from '../embedded/embedded-resource-store.ts'
import { silentLog } from '../log/log.ts'
import { isStoreError } from '../store/store-error.ts'
import { Cache } from './cache.ts'
import { startControlLoops } from './control-loops.ts'
import { Controller } from './controller.ts'
import { generationChanged } from './predicates.ts'
import { Reflector } from './reflector.ts'

/** Tries until it works: the writer of these tests outlives the store's connections. */
const insist = async <T>(attempt: () => Promise<T>): Promise<T> => {
  for (;;)
    try {
      return await attempt()
    } catch (error) {
      if (!isStoreError(error, 'Unavailable', 'Conflict')) throw error
      await new Promise(resolve => setTimeout(resolve, 20))
    }
}

const until = async (what: string, holds: () => boolean): Promise<void> => {
  for (const deadline = Date.now() + 15_000; !holds(); await new Promise(resolve => setTimeout(resolve, 10)))
    if (Date.now() > deadline) assert.fail(`Waited in vain until ${what}`)
}

/** Doubles every Thing's value into an annotation, on stores of its own; a writer and a breaker share the database. */
const setUp = async () => {
  const url = await storeDatabase()
  const writer = new EmbeddedResourceStore({ url, clientName: 'writer' })
  const store = new EmbeddedResourceStore({ url, clientName: 'loop', bookmarkEveryMs: 100 })
  const cache = new Cache<Thing>({ log: silentLog })
  const backoff = { baseMs: 20, capMs: 200 }
  const reflector = new Reflector({ store, type: thingType, sink: cache, log: silentLog, backoff })
  const seen = new Map<string, number>()
  const controller = new Controller({
    name: 'double',
    log: silentLog,
    concurrency: 4,
    reconcile: async key => {
      const thing = cache.get(key)
      if (thing === undefined) {
        seen.delete(key.name)
        return
      }
      const annotations = { double: String(thing.spec.value * 2) }
      const { uid, resourceVersion } = thing.metadata
      await store.patch(thingType, key, { metadata: { annotations } }, { uid, resourceVersion })
      seen.set(key.name, thing.spec.value)
    },
  })
  controller.watch(cache, { predicate: generationChanged })
  const loops = startControlLoops({ reflectors: [reflector], caches: [cache], controllers: [controller] })
  await loops.ready
  const breakConnections = async (): Promise<void> => {
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name like 'loop%'`,
    )
    await client.end()
  }
  const close = async (): Promise<void> => {
    assert.equal(await loops.stop(), true)
    await Promise.all([store.close(), writer.close()])
  }
  return { writer, store, cache, reflector, seen, breakConnections, close }
}

describe('Control loops on the embedded store', () => {
  it('bring every object to what its last spec asks for, connections dropped and history compacted meanwhile', async () => {
    const { writer, store, cache, reflector, seen, breakConnections, close } = await setUp()
    const names = Array.from({ length: sized(8, 40) }, (_, index) => `thing-${index}`)
    const truth = new Map<string, number>()
    const uids = new Map<string, string>()
    for (let round = 1; round <= sized(6, 30); round += 1) {
      await Promise.all([
        ...names.map(async (name, index) => {
          const key = { namespace: 'n', name }
          const uid = uids.get(name)
          if (uid === undefined) {
            const made = await insist(() => writer.create(thingType, { ...key, spec: { value: round } }))
            uids.set(name, made.metadata.uid)
            truth.set(name, round)
          } else if ((round + index) % 5 === 0) {
            await insist(() => writer.delete(thingType, key, { uid }))
            uids.delete(name)
            truth.delete(name)
          } else {
            await insist(() => writer.patch(thingType, key, { spec: { value: round } }, { uid }))
            truth.set(name, round)
          }
        }),
        round % 2 === 0 ? breakConnections() : undefined,
      ])
      if (round % 3 === 0) await writer.compact({ keepMs: 0, keepAtLeast: 0 })
    }
    const doubled = (): boolean =>
      cache.size === truth.size &&
      cache.list().every(({ metadata, spec }) => {
        const value = truth.get(metadata.name)
        return spec.value === value && metadata.annotations['double'] === String(value * 2)
      })
    await until('every object is doubled', doubled)
    await until('every deletion was noticed', () => seen.size === truth.size)
    const { items, resourceVersion } = await store.list(thingType)
    await until(
      'the reflector is at the end',
      () => BigInt(reflector.health().resourceVersion ?? 0) >= BigInt(resourceVersion),
    )
    const byName = (a: Thing, b: Thing): number => a.metadata.name.localeCompare(b.metadata.name)
    assert.deepEqual([...cache.list()].sort(byName), [...items].sort(byName))
    await close()
  }).timeout(60_000)
})
