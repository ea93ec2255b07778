/**
 * What a reflector has seen last of every resource of a type: read without a round trip, possibly a little old.
 * Changes are applied synchronously, then the handlers run; a handler that throws is logged and harms nobody.
 */
import { keyOf, keyText, type Resource, type ResourceKey } from '../../lib/model/resource.ts'
import type { Log } from '../log/log.ts'
import type { Selector } from '../store/resource-store.ts'

/**
 * A change of a cached resource. `initial`: it came with the first list, so it is not news. `deleted` carries the last
 * known state.
 */
export interface CacheEvent<R extends Resource> {
  readonly type: 'added' | 'modified' | 'deleted'
  readonly object: R
  readonly old?: R
  readonly initial: boolean
}

export type CacheHandler<R extends Resource> = (event: CacheEvent<R>) => void

/** Computes the values under which an object is found in an index. */
export type IndexFunction<R extends Resource> = (object: R) => readonly string[]

export interface CacheOptions<R extends Resource, Index extends string> {
  readonly log: Log
  readonly indexes?: Readonly<Record<Index, IndexFunction<R>>>
  /** Strips what nobody reads, before the object is kept. */
  readonly transform?: (object: R) => R
}

export class Cache<R extends Resource, Index extends string = never> {
  readonly #log: Log
  readonly #transform: (object: R) => R
  readonly #indexFunctions: ReadonlyMap<string, IndexFunction<R>>
  readonly #objects = new Map<string, R>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #indexes = new Map<string, Map<string, Set<string>>>()
  readonly #handlers = new Set<CacheHandler<R>>()
  readonly #synced = Promise.withResolvers<undefined>()
  #isSynced = false

  constructor(options: CacheOptions<R, Index>) {
    this.#log = options.log
    this.#transform = options.transform ?? (object => object)
    this.#indexFunctions = new Map(Object.entries<IndexFunction<R>>(options.indexes ?? {}))
    for (const name of this.#indexFunctions.keys()) this.#indexes.set(name, new Map())
  }

  /** The object as last seen, or undefined. */
  get(key: ResourceKey): R | undefined {
    return this.#objects.get(keyText(key))
  }

  /** Every object that matches; labels must all be equal. */
  list(selector: Selector = {}): readonly R[] {
    const labels = Object.entries(selector.labels ?? {})
    const candidates =
      selector.namespace === undefined
        ? this.#objects.values()
        : this.#resolve(this.#byNamespace.get(selector.namespace))
    return [...candidates].filter(object => labels.every(([name, value]) => object.metadata.labels[name] === value))
  }

  /** The objects that an index function gave this value. */
  byIndex(index: Index, value: string): readonly R[] {
    return this.#resolve(this.#indexes.get(index)?.get(value))
  }

  get size(): number {
    return this.#objects.size
  }

  /** Whether the first list is in. */
  get synced(): boolean {
    return this.#isSynced
  }

  /**
   * Resolves once the first list is in and its handlers ran.
   * @throws the signal's reason when it aborts first
   */
  waitForSync(signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return this.#synced.promise
    return new Promise((resolve, reject) => {
      // An abort's reason is whatever the aborter gave; it is passed on as it is.
      const abort = (): void => reject(signal.reason as Error)
      if (signal.aborted) abort()
      signal.addEventListener('abort', abort, { once: true })
      void this.#synced.promise.then(() => {
        signal.removeEventListener('abort', abort)
        resolve()
      })
    })
  }

  /**
   * Calls back after every change, and at once (as initial additions) for what is there already; returns how to stop.
   */
  subscribe(handler: CacheHandler<R>): () => void {
    this.#handlers.add(handler)
    for (const object of this.#objects.values()) this.#call(handler, { type: 'added', object, initial: true })
    return () => this.#handlers.delete(handler)
  }

  /**
   * For the reflector: the whole truth at one moment. What is missing in it becomes a deletion.
   * @returns how many objects differed from what was cached
   */
  replace(items: readonly R[]): number {
    const initial = !this.#isSynced
    const listed = new Set(items.map(item => keyText(keyOf(item))))
    const gone = [...this.#objects].filter(([key]) => !listed.has(key)).map(([, object]) => object)
    let changes = gone.length
    for (const object of gone) this.#remove(object)
    for (const item of items) if (this.#put(item, initial)) changes += 1
    this.#isSynced = true
    this.#synced.resolve(undefined)
    return changes
  }

  /** For the reflector: one change. An object that is cached in this very version is no news. */
  apply(type: 'added' | 'modified' | 'deleted', object: R): void {
    if (type === 'deleted') this.#remove(object)
    else this.#put(object, false)
  }

  #put(raw: R, initial: boolean): boolean {
    const key = keyText(keyOf(raw))
    const old = this.#objects.get(key)
    if (old?.metadata.resourceVersion === raw.metadata.resourceVersion && old.metadata.uid === raw.metadata.uid)
      return false
    const object = this.#transform(raw)
    if (old !== undefined && old.metadata.uid !== object.metadata.uid) {
      // The name was used again between two looks: whoever watches learns of both lives.
      this.#remove(old)
      this.#put(raw, initial)
      return true
    }
    if (old !== undefined) this.#unindex(key, old)
    this.#objects.set(key, object)
    this.#index(key, object)
    this.#emit(old === undefined ? { type: 'added', object, initial } : { type: 'modified', object, old, initial })
    return true
  }

  #remove(last: R): void {
    const key = keyText(keyOf(last))
    const old = this.#objects.get(key)
    // A late tombstone of a former life must not take the present one with it.
    if (old === undefined || old.metadata.uid !== last.metadata.uid) return
    this.#unindex(key, old)
    this.#objects.delete(key)
    this.#emit({ type: 'deleted', object: old === last ? old : this.#transform(last), old, initial: false })
  }

  #emit(event: CacheEvent<R>): void {
    for (const handler of this.#handlers) this.#call(handler, event)
  }

  #call(handler: CacheHandler<R>, event: CacheEvent<R>): void {
    try {
      handler(event)
    } catch (error) {
      this.#log.error({ err: error, key: keyText(keyOf(event.object)), type: event.type }, 'A cache handler threw')
    }
  }

  #places(object: R): [Map<string, Set<string>>, string][] {
    const places: [Map<string, Set<string>>, string][] = [[this.#byNamespace, object.metadata.namespace]]
    for (const [name, values] of this.#indexFunctions) {
      const index = this.#indexes.get(name)
      if (index !== undefined) for (const value of values(object)) places.push([index, value])
    }
    return places
  }

  #index(key: string, object: R): void {
    for (const [index, value] of this.#places(object)) {
      const keys = index.get(value)
      if (keys === undefined) index.set(value, new Set([key]))
      else keys.add(key)
    }
  }

  #unindex(key: string, object: R): void {
    for (const [index, value] of this.#places(object)) {
      const keys = index.get(value)
      keys?.delete(key)
      if (keys?.size === 0) index.delete(value)
    }
  }

  #resolve(keys: ReadonlySet<string> | undefined): readonly R[] {
    return [...(keys ?? [])].map(key => this.#objects.get(key)).filter(object => object !== undefined)
  }
}
