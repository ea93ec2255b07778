import type { ResourceStore } from '../runtime/store/resource-store.ts'

/** A mutating call of a store, e.g. `create Environment acme.shop.pr-1`. */
export interface StoreCall {
  readonly verb: 'create' | 'patch' | 'patchStatus' | 'delete'
  readonly kind: string
  readonly name: string
}

/** What happens around the mutating calls of a store. Whatever it throws is what the caller meets. */
export interface Faults {
  /** Before the call: when it throws, nothing happens. */
  before?(call: StoreCall): Promise<void> | void
  /** After the call succeeded: when it throws, it happened and nobody knows. */
  after?(call: StoreCall): Promise<void> | void
  /** Before a read. */
  reading?(): Promise<void> | void
}

/** A store with faults. */
export const faultyStore = (store: ResourceStore, faults: Faults): ResourceStore => {
  const around = async <T>(call: StoreCall, run: () => Promise<T>): Promise<T> => {
    await faults.before?.(call)
    const answer = await run()
    await faults.after?.(call)
    return answer
  }
  return {
    identity: async () => {
      await faults.reading?.()
      return store.identity()
    },
    get: async (type, key) => {
      await faults.reading?.()
      return store.get(type, key)
    },
    list: async (type, selector) => {
      await faults.reading?.()
      return store.list(type, selector)
    },
    watch: (type, options) => store.watch(type, options),
    create: (type, resource) =>
      around({ verb: 'create', kind: type.kind, name: resource.name }, () => store.create(type, resource)),
    patch: (type, key, patch, preconditions) =>
      around({ verb: 'patch', kind: type.kind, name: key.name }, () => store.patch(type, key, patch, preconditions)),
    patchStatus: (type, key, status, preconditions) =>
      around({ verb: 'patchStatus', kind: type.kind, name: key.name }, () =>
        store.patchStatus(type, key, status, preconditions),
      ),
    delete: (type, key, preconditions) =>
      around({ verb: 'delete', kind: type.kind, name: key.name }, () => store.delete(type, key, preconditions)),
  }
}
