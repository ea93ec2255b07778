/**
 * A ResourceStore in memory, for property runs of pure loops over thousands of histories: no watch. Anything that is
 * about a store itself is tested on the real ones.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { keyOf, keyText, type ObjectMetadata, type Resource, type ResourceType } from '../lib/model/resource.ts'
import type { Preconditions, ResourceStore } from '../runtime/store/resource-store.ts'
import { StoreError } from '../runtime/store/store-error.ts'

export interface MemoryStore extends ResourceStore {
  /** Writes so far. */
  readonly writes: () => number
}

/** RFC 7396. */
const merged = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result = new Map<string, unknown>(isObject ? Object.entries(target) : [])
  for (const [field, value] of Object.entries(patch))
    if (value === null) result.delete(field)
    else result.set(field, merged(result.get(field), value))
  return Object.fromEntries(result)
}

export const memoryStore = (now: () => number): MemoryStore => {
  const objects = new Map<string, Resource>()
  let version = 0
  let writes = 0
  const idOf = (type: { kind: string }, key: { namespace: string; name: string }): string =>
    `${type.kind} ${keyText(key)}`
  const found = <R extends Resource>(
    type: ResourceType<R>,
    key: { namespace: string; name: string },
    pre: Preconditions,
    foreign: 'Invalid' | 'Conflict',
  ): R => {
    const object = objects.get(idOf(type, key)) as R | undefined
    if (object === undefined) throw new StoreError('NotFound', `No ${type.kind} ${keyText(key)}`)
    if (object.metadata.uid !== pre.uid) throw new StoreError(foreign, 'The uid is another one')
    if (pre.resourceVersion !== undefined && pre.resourceVersion !== object.metadata.resourceVersion)
      throw new StoreError('Conflict', 'The resource changed meanwhile')
    return object
  }
  const put = <R extends Resource>(type: ResourceType<R>, next: R, old: R | undefined): R => {
    const violations = type.validate(next, old)
    if (violations.length > 0)
      throw new StoreError('Invalid', violations.map(v => `${v.field}: ${v.message}`).join('; '))
    writes += 1
    const kept = structuredClone({ ...next, metadata: { ...next.metadata, resourceVersion: String(++version) } })
    if (kept.metadata.deletionTimestamp !== undefined && kept.metadata.finalizers.length === 0)
      objects.delete(idOf(type, keyOf(kept)))
    else objects.set(idOf(type, keyOf(kept)), kept)
    return structuredClone(kept)
  }
  return {
    writes: () => writes,
    identity: async () => 'memory',
    get: async (type, key) => structuredClone(objects.get(idOf(type, key))) as never,
    list: async (type, selector) => ({
      items: structuredClone(
        [...objects.values()].filter(
          object =>
            object.kind === type.kind &&
            (selector?.namespace === undefined || object.metadata.namespace === selector.namespace),
        ),
      ) as never,
      resourceVersion: String(version),
    }),
    watch: () => {
      throw new Error('The memory store has no watch')
    },
    create: async (type, { namespace, name, labels = {}, annotations = {}, finalizers = [], spec }) => {
      if (objects.has(idOf(type, { namespace, name }))) throw new StoreError('AlreadyExists', `${name} exists`)
      const metadata: ObjectMetadata = {
        ...{ namespace, name, labels, annotations, finalizers, ownerReferences: [] },
        ...{ uid: randomUUID(), resourceVersion: '', generation: 1, creationTimestamp: new Date(now()).toISOString() },
      }
      const made = { apiVersion: type.apiVersion, kind: type.kind, metadata, spec: type.prune(spec) }
      return put(type, made as never, undefined)
    },
    patch: async (type, key, patch, pre) => {
      const old = found(type, key, pre, 'Invalid')
      const spec = patch.spec === undefined ? old.spec : type.prune(merged(old.spec, patch.spec))
      const metadata = merged(old.metadata, patch.metadata ?? {}) as ObjectMetadata
      const generation = old.metadata.generation + (isDeepStrictEqual(spec, old.spec) ? 0 : 1)
      const next = { ...old, spec, metadata: { ...metadata, generation } }
      return isDeepStrictEqual(next, old) ? old : put(type, next, old)
    },
    patchStatus: async (type, key, status, pre) => {
      const old = found(type, key, pre, 'Invalid')
      const next = { ...old, status: merged(old.status ?? {}, status) }
      return isDeepStrictEqual(next, old) ? old : put(type, next, old)
    },
    delete: async (type, key, pre) => {
      const old = found(type, key, pre, 'Conflict')
      const refusal = type.admitDelete(old)
      if (refusal !== undefined) throw new StoreError('Forbidden', refusal)
      if (old.metadata.deletionTimestamp !== undefined) return
      const deletionTimestamp = new Date(now()).toISOString()
      const metadata = { ...old.metadata, deletionTimestamp, generation: old.metadata.generation + 1 }
      put(type, { ...old, metadata }, old)
    },
  }
}
