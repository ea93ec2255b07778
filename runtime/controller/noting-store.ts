import type { Resource, ResourceKey, ResourceType } from '../../lib/model/resource.ts'
import type { ResourceStore } from '../store/resource-store.ts'
import { isStoreError } from '../store/store-error.ts'
import type { ConsistencyGate } from './consistency-gate.ts'

/**
 * A store whose writes of one kind are noted in a gate, for whoever reads what it wrote from a cache. Kinds that nobody
 * reads so are not: nobody would ever take their notes away.
 */
export const notingStore = (
  store: ResourceStore,
  gate: ConsistencyGate,
  { kind }: Pick<ResourceType, 'kind'>,
): ResourceStore => {
  const noting = async <R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    write: () => Promise<R>,
  ): Promise<R> => {
    if (type.kind !== kind) return await write()
    try {
      const written = await write()
      gate.wrote(kind, key, written.metadata.resourceVersion)
      return written
    } catch (error) {
      if (isUncertain(error)) gate.mayHaveWritten(kind, key)
      throw error
    }
  }
  return {
    identity: () => store.identity(),
    get: (type, key) => store.get(type, key),
    list: (type, selector) => store.list(type, selector),
    watch: (type, options) => store.watch(type, options),
    create: (type, resource) => noting(type, resource, () => store.create(type, resource)),
    patch: (type, key, patch, pre) => noting(type, key, () => store.patch(type, key, patch, pre)),
    patchStatus: (type, key, status, pre) => noting(type, key, () => store.patchStatus(type, key, status, pre)),
    delete: async (type, key, pre) => {
      // The answer names no version: what is there now is known only by asking.
      if (type.kind === kind) gate.mayHaveWritten(kind, key)
      await store.delete(type, key, pre)
    },
  }
}

/** Everything but a clear no may have happened. */
const isUncertain = (error: unknown): boolean =>
  !isStoreError(error, 'NotFound', 'AlreadyExists', 'Conflict', 'Invalid', 'Forbidden', 'Gone', 'TooManyRequests')
