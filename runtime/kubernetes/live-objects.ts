/**
 * Objects of one kind as they are now, read without a call: what a cache has seen, or what we wrote ourselves where the cache
 * has not seen that yet. So nobody acts on something older than his own last write, and nobody waits for a watch either.
 * A write whose answer was lost is asked for, once, before anything else is said of the object.
 */
import { keyText } from '../../lib/model/resource.ts'
import type { Cache } from '../controller/cache.ts'
import { isStoreError } from '../store/store-error.ts'
import type { KubernetesObject, KubernetesObjects, ObjectKey, ObjectType } from './kubernetes-object.ts'
import type { Observed } from './object-source.ts'
import { metadataOf } from './resource-from-object.ts'

/** What the cache has not seen yet: an object as we wrote it, or that we asked for the deletion of this uid. */
interface Note<O> {
  readonly version: bigint
  readonly object: O | undefined
}

export interface LiveObjectsOptions<O extends KubernetesObject> {
  readonly objects: KubernetesObjects
  readonly type: ObjectType<O>
  readonly cache: Cache<Observed<O>>
  /** How far the cache has seen everything; undefined: nothing yet. */
  readonly seenUpTo: () => string | undefined
}

export class LiveObjects<O extends KubernetesObject> {
  readonly #options: LiveObjectsOptions<O>
  readonly #notes = new Map<string, Note<Observed<O>>>()
  readonly #deleted = new Map<string, string>()
  readonly #uncertain = new Set<string>()

  constructor(options: LiveObjectsOptions<O>) {
    this.#options = options
  }

  /** The object as it is to the best of our knowledge; one that we asked to delete has a deletionTimestamp. */
  get(key: ObjectKey): Observed<O> | undefined {
    const id = keyText(key)
    const object = this.#newest(key, id)
    const deleted = this.#deleted.get(id)
    if (deleted === undefined) return object
    if (object === undefined || object.metadata.uid !== deleted || object.metadata.deletionTimestamp !== undefined) {
      this.#deleted.delete(id)
      return object
    }
    return { ...object, metadata: { ...object.metadata, deletionTimestamp: new Date().toISOString() } }
  }

  /** As `get`, after asking the API server where an answer to a write of ours was lost. */
  async certain(key: ObjectKey): Promise<Observed<O> | undefined> {
    return this.#uncertain.has(keyText(key)) ? this.read(key) : this.get(key)
  }

  /** The object from the API server itself. */
  async read(key: ObjectKey): Promise<Observed<O> | undefined> {
    const { objects, type } = this.#options
    const object = await objects.get(type, key)
    this.#uncertain.delete(keyText(key))
    if (object === undefined) {
      this.#notes.delete(keyText(key))
      return undefined
    }
    return this.#note(key, object)
  }

  /** @throws StoreError */
  async apply(object: O): Promise<Observed<O>> {
    const { objects, type } = this.#options
    const key = { namespace: object.metadata?.namespace ?? '', name: object.metadata?.name ?? '' }
    return this.#note(key, await this.#sure(key, () => objects.apply(type, object)))
  }

  /** @throws StoreError */
  async merge(key: ObjectKey, patch: Readonly<Record<string, unknown>>): Promise<Observed<O>> {
    const { objects, type } = this.#options
    return this.#note(key, await this.#sure(key, () => objects.merge(type, key, patch)))
  }

  /** Harmless when it is gone. @throws StoreError */
  async delete(key: ObjectKey, options: Parameters<KubernetesObjects['delete']>[2]): Promise<void> {
    const { objects, type } = this.#options
    await this.#sure(key, () => objects.delete(type, key, options))
    this.#deleted.set(keyText(key), options.uid)
  }

  #newest(key: ObjectKey, id: string): Observed<O> | undefined {
    const note = this.#notes.get(id)
    if (note === undefined) return this.#options.cache.get(key)
    const seen = this.#options.seenUpTo()
    const cached = this.#options.cache.get(key)
    if (
      (seen !== undefined && BigInt(seen) >= note.version) ||
      (cached !== undefined && BigInt(cached.metadata.resourceVersion) >= note.version)
    ) {
      this.#notes.delete(id)
      return cached
    }
    return note.object
  }

  #note(key: ObjectKey, object: O): Observed<O> {
    const { type } = this.#options
    const observed = {
      ...object,
      apiVersion: type.apiVersion,
      kind: type.kind,
      metadata: metadataOf(object),
    } as unknown as Observed<O>
    this.#notes.set(keyText(key), { version: BigInt(observed.metadata.resourceVersion), object: observed })
    return observed
  }

  /** Remembers that nobody knows what a write did whose answer was lost. */
  async #sure<T>(key: ObjectKey, write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (!isStoreError(error) || isStoreError(error, 'Unavailable', 'Conflict')) this.#uncertain.add(keyText(key))
      throw error
    }
  }
}
