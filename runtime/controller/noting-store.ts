import type { Resource, ResourceKey, ResourceType } from '../../lib/model/resource.ts'
import type { ResourceStore } from '../store/resource-store.ts'
import type { LiveView } from './live-view.ts'

/**
 * A store whose writes of one kind show in a view of it at once, for whoever reads what it wrote from a cache. Kinds that nobody
 * reads so are not noted: nobody would ever take their notes away.
 */
export const notingStore = <Seen extends Resource>(
  store: ResourceStore,
  view: LiveView<Seen>,
  { kind }: Pick<ResourceType<Seen>, 'kind'>,
): ResourceStore => {
  const noting = <R extends Resource>(type: ResourceType<R>, key: ResourceKey, write: () => Promise<R>): Promise<R> =>
    // The kind says that it is what the view is of.
    type.kind === kind ? (view.write(key, write as unknown as () => Promise<Seen>) as unknown as Promise<R>) : write()
  return {
    identity: () => store.identity(),
    get: (type, key) => store.get(type, key),
    list: (type, selector) => store.list(type, selector),
    watch: (type, options) => store.watch(type, options),
    create: (type, resource) => noting(type, resource, () => store.create(type, resource)),
    patch: async (type, key, patch, pre) => {
      const { metadata, ...rest } = await noting(type, key, () => store.patch(type, key, patch, pre))
      // Whoever takes the last finalizer away is answered with what then goes, by a version that was there before.
      const released = metadata.deletionTimestamp !== undefined && metadata.finalizers.length === 0
      if (released && type.kind === kind) view.isGone(key, metadata.uid)
      return { metadata, ...rest } as never
    },
    patchStatus: (type, key, status, pre) => noting(type, key, () => store.patchStatus(type, key, status, pre)),
    delete: async (type, key, pre) => {
      try {
        await store.delete(type, key, pre)
      } finally {
        // The answer names no version: what is there now is known only by asking.
        if (type.kind === kind) view.doubt(key)
      }
    },
  }
}
