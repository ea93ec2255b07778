/**
 * Resources of one kind as they are now, read without a call: what a cache has seen, or what we wrote ourselves where the cache
 * has not seen that yet. So nobody acts on something older than his own last write, and nobody waits for a watch either. A write
 * whose answer was lost is asked for before anything else is said, and so is a cache that stays behind for long.
 *
 * Versions of one type are numbers that rise in the order of its writes. One that is no number is never waited for.
 */
import { keyText, type Resource, type ResourceKey } from '../../lib/model/resource.ts'
import { isStoreError } from '../store/store-error.ts'
import type { Cache } from './cache.ts'
import { type Clock, systemClock } from './clock.ts'
import type { LiveViewObserver } from './observers.ts'

/** A cache that is behind for longer may hang, or its store was set back: the store is asked. */
const ASK_AFTER_MS = 5_000

/** What the cache has not seen yet. */
interface Note<R> {
  readonly version: bigint
  readonly object: R
  readonly since: number
}

export interface LiveViewOptions<R extends Resource> {
  readonly cache: Pick<Cache<R>, 'get'>
  /** How far the cache has seen everything; undefined: nothing yet. */
  readonly seenUpTo: () => string | undefined
  /** Asks the store itself. */
  readonly read: (key: ResourceKey) => Promise<R | undefined>
  readonly clock?: Clock
  readonly observer?: LiveViewObserver | undefined
}

export class LiveView<R extends Resource> {
  readonly #options: LiveViewOptions<R>
  readonly #clock: Clock
  readonly #notes = new Map<string, Note<R>>()
  /** Uids whose deletion we asked for. */
  readonly #going = new Map<string, string>()
  /** Uids that are known to be gone. */
  readonly #gone = new Map<string, string>()
  readonly #uncertain = new Set<string>()

  constructor(options: LiveViewOptions<R>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** The resource as it is to the best of our knowledge; one that we asked to delete has a deletionTimestamp. */
  get(key: ResourceKey): R | undefined {
    const id = keyText(key)
    const object = this.#newest(key, id)
    if (object === undefined || this.#gone.get(id) !== object.metadata.uid) this.#gone.delete(id)
    else return undefined
    const going = this.#going.get(id)
    if (going === undefined) return object
    if (object === undefined || object.metadata.uid !== going || object.metadata.deletionTimestamp !== undefined) {
      this.#going.delete(id)
      return object
    }
    // What is of the wall is not read from a clock for durations.
    const deletionTimestamp = new Date().toISOString()
    return { ...object, metadata: { ...object.metadata, deletionTimestamp } }
  }

  /** The cache has changed there: what it has caught up with is forgotten, though nobody asks for it. */
  cacheChanged(key: ResourceKey): void {
    this.get(key)
  }

  /** As `get`, after asking the store where an answer to a write of ours was lost, or the cache stays behind. */
  async certain(key: ResourceKey): Promise<R | undefined> {
    const id = keyText(key)
    if (this.#uncertain.has(id)) {
      this.#options.observer?.asked('answer_lost')
      return this.read(key)
    }
    // First what the cache has seen: that may be enough.
    const object = this.get(key)
    const note = this.#notes.get(id)
    if (note === undefined || this.#clock.now() - note.since < ASK_AFTER_MS) return object
    this.#options.observer?.asked('cache_behind')
    return this.read(key)
  }

  /** The resource from the store itself. */
  async read(key: ResourceKey): Promise<R | undefined> {
    const id = keyText(key)
    const before = this.#notes.get(id)
    const seen = this.#options.cache.get(key)?.metadata.uid
    // A write whose answer is lost meanwhile is uncertain again.
    this.#uncertain.delete(id)
    try {
      const object = await this.#options.read(key)
      if (object !== undefined) {
        const note = this.#notes.get(id)
        // Written while this was under way: the answer may be from before it.
        if (note !== undefined && note !== before) return note.object
        // Also what is older than a note: a store may have been set back.
        this.#note(key, id, object)
        if (this.#gone.get(id) === object.metadata.uid) this.#gone.delete(id)
        return object
      }
      // What was written, or seen for the first time, while this was under way may have been made after the answer.
      const note = this.#notes.get(id)
      if (note !== undefined && note !== before) return note.object
      this.#notes.delete(id)
      if (seen !== undefined) this.#setGone(key, seen)
      return undefined
    } catch (error) {
      this.#uncertain.add(id)
      throw error
    }
  }

  /**
   * Makes a write and remembers what it came to. @throws whatever it throws: then nobody knows what it did, or it was about
   * something older than what is there, and the store is asked the next time
   */
  async write<W extends R | undefined>(key: ResourceKey, write: () => Promise<W>): Promise<W> {
    const id = keyText(key)
    try {
      const written = await write()
      if (written === undefined) return written
      const before = this.#notes.get(id)
      const version = numberOf(written.metadata.resourceVersion)
      // Answers may come in another order than the writes.
      if (before === undefined || version === undefined || before.version < version) this.#note(key, id, written)
      return written
    } catch (error) {
      if (!isStoreError(error, ...CLEAR_NO)) this.#uncertain.add(id)
      throw error
    }
  }

  /** Nobody knows what is there now: the store is asked the next time. */
  doubt(key: ResourceKey): void {
    this.#uncertain.add(keyText(key))
  }

  /** The resource that has this uid is gone, whatever the cache still shows. */
  isGone(key: ResourceKey, uid: string): void {
    const id = keyText(key)
    this.#notes.delete(id)
    this.#uncertain.delete(id)
    this.#setGone(key, uid)
  }

  /** We asked for the deletion of the resource that has this uid. */
  deletionAsked(key: ResourceKey, uid: string): void {
    if (this.get(key)?.metadata.uid === uid) this.#going.set(keyText(key), uid)
  }

  /** How much is known beyond what the cache has seen. */
  get size(): number {
    return this.#notes.size + this.#gone.size + this.#going.size
  }

  /** A cache that shows it no more will not be asked whether it does. */
  #setGone(key: ResourceKey, uid: string): void {
    if (this.#options.cache.get(key)?.metadata.uid === uid) this.#gone.set(keyText(key), uid)
  }

  #newest(key: ResourceKey, id: string): R | undefined {
    const cached = this.#options.cache.get(key)
    const note = this.#notes.get(id)
    if (note === undefined) return cached
    const versions = [this.#options.seenUpTo(), cached?.metadata.resourceVersion]
    if (!versions.some(version => version !== undefined && (numberOf(version) ?? note.version) >= note.version))
      return note.object
    this.#notes.delete(id)
    return cached
  }

  #note(key: ResourceKey, id: string, object: R): void {
    const version = numberOf(object.metadata.resourceVersion)
    this.#notes.delete(id)
    if (version === undefined) return
    this.#notes.set(id, { version, object, since: this.#clock.now() })
    // The watch may have been faster than the answer.
    this.#newest(key, id)
  }
}

/** What a store answers that did nothing, and that says nothing of how old our knowledge is. */
const CLEAR_NO = ['NotFound', 'AlreadyExists', 'Invalid', 'Forbidden', 'Gone', 'TooManyRequests'] as const

const numberOf = (version: string): bigint | undefined => (/^\d+$/.test(version) ? BigInt(version) : undefined)
