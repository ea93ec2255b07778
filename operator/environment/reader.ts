/** Where the reconciler reads an Environment: the store itself, or a cache that is no older than our own last write. */
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { Cache } from '../../runtime/controller/cache.ts'
import type { ConsistencyGate } from '../../runtime/controller/consistency-gate.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'

/** Answers the resource, or undefined. @throws NotCaughtUpError when a cache knows less than we wrote */
export interface EnvironmentReader {
  get(key: ResourceKey, signal?: AbortSignal): Promise<Environment | undefined>
}

/** Asks the store at every look: cheap where it is a local database, and never old. */
export const freshReader = (store: Pick<ResourceStore, 'get'>): EnvironmentReader => ({
  get: key => store.get(environmentType, key),
})

/** Asks nobody: thousands of environments are looked at without a call. The store is asked where the gate wants it. */
export const cachedReader = (options: {
  readonly store: Pick<ResourceStore, 'get'>
  readonly cache: Pick<Cache<Environment>, 'get'>
  readonly gate: ConsistencyGate
  /** How far the cache has seen everything. */
  readonly seenUpTo: () => string | undefined
}): EnvironmentReader => {
  const { store, cache, gate, seenUpTo } = options
  const { kind } = environmentType
  return {
    get: async (key, signal) => {
      if ((await gate.pass(kind, key, seenUpTo, signal)) === 'open') return cache.get(key)
      const current = await store.get(environmentType, key)
      if (current !== undefined) gate.wasRead(kind, key, current.metadata.resourceVersion)
      // While the cache still shows what is gone, the next look asks again.
      else if (cache.get(key) === undefined) gate.forget(kind, key)
      return current
    },
  }
}
