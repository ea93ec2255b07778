/**
 * Keeps a cache equal to a store: lists, watches from there, resumes, and lists again when it must. One loop that never
 * ends unless stopped; whatever the store throws, it waits and goes on.
 *
 *   listing -> watching -> (the stream ended or was silent: resume) -> watching
 *   listing | watching -> (an error) -> backoff -> listing (Gone, nothing listed yet, versions that fall) | watching
 */
import type { Resource, ResourceType } from '../../lib/model/resource.ts'
import type { Log } from '../log/log.ts'
import type { ResourceStore, Selector, WatchEvent } from '../store/resource-store.ts'
import { isStoreError } from '../store/store-error.ts'
import { isOlder } from '../store/versions.ts'
import { type BackoffPolicy, backoffMs, RECONNECT_BACKOFF } from './backoff.ts'
import { type Clock, sleep, systemClock } from './clock.ts'
import type {
  ControlMetrics,
  ListReason,
  ReflectorHealth,
  ReflectorObserver,
  ReflectorState,
  WatchEnd,
} from './observers.ts'

/** What a reflector feeds: a Cache. */
export interface ReflectorSink<R extends Resource> {
  replace(items: readonly R[]): number
  apply(type: 'added' | 'modified' | 'deleted', object: R): void
}

export interface ReflectorOptions<R extends Resource> {
  readonly store: Pick<ResourceStore, 'list' | 'watch'>
  readonly type: ResourceType<R>
  readonly sink: ReflectorSink<R>
  readonly log: Log
  readonly selector?: Selector
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
  readonly backoff?: BackoffPolicy | undefined
  readonly metrics?: ControlMetrics | undefined
  /** Tells it apart in metrics and logs; the kind by default. */
  readonly name?: string
  /** A list that takes longer is given up and made again. */
  readonly listDeadlineMs?: number
  /** A watch that is silent for longer, bookmarks included, is opened anew from where it was. */
  readonly idleTimeoutMs?: number | undefined
}

/** A watch that lasted this long clears the back-off. */
const HEALTHY_AFTER_MS = 120_000
/** A stream that ends sooner counts as a failure: resuming at once would spin. */
const SHORTEST_WATCH_MS = 1_000

const SILENCE = Symbol('silence')

export class Reflector<R extends Resource> {
  readonly name: string
  readonly #options: ReflectorOptions<R>
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: Log
  readonly #observer: ReflectorObserver | undefined
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #state: ReflectorState = 'listing'
  #version: string | undefined
  #listReason: ListReason | undefined = 'start'
  #failures = 0
  #lists = 0
  #lastHeardAt: number
  #failingSince: number | undefined
  #lastError: string | undefined

  constructor(options: ReflectorOptions<R>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.name = options.name ?? options.type.kind
    this.#log = options.log.child({ reflector: this.name })
    this.#observer = options.metrics?.forReflector(this.name, () => this.health())
    this.#lastHeardAt = this.#clock.now()
    this.#failingSince = this.#lastHeardAt
  }

  /** Begins; harmless when it runs already. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the loop; resolves once nothing of it runs. A stopped reflector stays stopped. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
    this.#state = 'stopped'
  }

  /** How far the cache has seen everything; undefined before the first list. */
  get seenUpTo(): string | undefined {
    return this.#version
  }

  health(): ReflectorHealth {
    const now = this.#clock.now()
    return {
      state: this.#state,
      synced: this.#lists > 0,
      resourceVersion: this.#version,
      idleMs: now - this.#lastHeardAt,
      failingMs: this.#failingSince === undefined ? 0 : now - this.#failingSince,
      lists: this.#lists,
      lastError: this.#lastError,
    }
  }

  async #run(): Promise<void> {
    while (!this.#isStopped()) {
      try {
        if (this.#listReason !== undefined) await this.#list(this.#listReason)
        if (await this.#watch()) continue
      } catch (error) {
        if (this.#isStopped()) break
        this.#lastError = error instanceof Error ? error.message : String(error)
        this.#failingSince ??= this.#clock.now()
        if (isStoreError(error, 'Gone')) this.#listReason = 'gone'
        this.#log.warn({ err: error, failures: this.#failures, state: this.#state }, 'The reflector will try again')
      }
      await this.#rest()
    }
    this.#state = 'stopped'
  }

  async #rest(): Promise<void> {
    if (this.#isStopped()) return
    this.#state = 'backoff'
    const ms = backoffMs(this.#options.backoff ?? RECONNECT_BACKOFF, this.#failures, this.#random)
    this.#failures += 1
    await sleep(this.#clock, ms, this.#stop.signal)
  }

  #isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  #isWell(): void {
    this.#lastHeardAt = this.#clock.now()
    this.#failingSince = undefined
    this.#lastError = undefined
  }

  async #list(reason: ListReason): Promise<void> {
    this.#state = 'listing'
    const { store, type, selector, sink, listDeadlineMs = 60_000 } = this.#options
    const list = await this.#within(store.list(type, selector), listDeadlineMs)
    if (list === undefined) return
    if (list === SILENCE) throw new Error(`Cannot list ${type.kind}: no answer within ${listDeadlineMs} ms`)
    const changes = sink.replace(list.items)
    this.#version = list.resourceVersion
    this.#listReason = undefined
    this.#lists += 1
    this.#isWell()
    this.#observer?.listed(reason, reason === 'start' ? 0 : changes)
    this.#log.debug({ reason, items: list.items.length, changes, resourceVersion: list.resourceVersion }, 'Listed')
  }

  /** Follows one stream to its end. true: go on at once, false: rest first. */
  async #watch(): Promise<boolean> {
    const { store, type, selector, idleTimeoutMs = 90_000 } = this.#options
    const from = this.#version
    if (from === undefined || this.#isStopped()) return true
    const startedAt = this.#clock.now()
    const ending = new AbortController()
    let end: WatchEnd = 'error'
    let stream: AsyncIterator<WatchEvent<R>> | undefined
    try {
      const options = { from, signal: AbortSignal.any([this.#stop.signal, ending.signal]) }
      stream = store.watch(type, selector === undefined ? options : { ...options, selector })[Symbol.asyncIterator]()
      this.#state = 'watching'
      end = await this.#follow(stream, idleTimeoutMs)
    } catch (error) {
      if (isStoreError(error, 'Gone')) end = 'gone'
      throw error
    } finally {
      // Not awaited: a stalled stream would hold the loop for ever.
      ending.abort()
      void Promise.resolve(stream?.return?.()).catch(() => undefined)
      this.#observer?.watchEnded(this.#isStopped() ? 'stopped' : end)
      if (this.#clock.now() - startedAt >= HEALTHY_AFTER_MS) this.#failures = 0
    }
    if (end === 'regression') this.#listReason = 'regression'
    const lasted = end === 'idle' || (end === 'closed' && this.#clock.now() - startedAt >= SHORTEST_WATCH_MS)
    // A quiet store sends nothing: that the stream held is all there is to see.
    if (lasted) this.#failingSince = undefined
    return lasted
  }

  async #follow(stream: AsyncIterator<WatchEvent<R>>, idleTimeoutMs: number): Promise<WatchEnd> {
    for (;;) {
      const next = await this.#within(stream.next(), idleTimeoutMs)
      if (next === undefined) return 'stopped'
      if (next === SILENCE) return 'idle'
      if (next.done === true) return 'closed'
      this.#isWell()
      if (!this.#accept(next.value)) return 'regression'
    }
  }

  /** Takes one event in. false: versions went back, so what is cached cannot be trusted. */
  #accept(event: WatchEvent<R>): boolean {
    const version = event.type === 'bookmark' ? event.resourceVersion : event.object.metadata.resourceVersion
    if (this.#version !== undefined && isOlder(version, this.#version)) {
      this.#log.warn({ resourceVersion: version, last: this.#version }, 'Resource versions went back: listing again')
      return false
    }
    if (event.type !== 'bookmark') {
      this.#observer?.event()
      this.#options.sink.apply(event.type, event.object)
    }
    // Last: an event that could not be taken in is seen again, never skipped.
    this.#version = version
    return true
  }

  /** The promise's value; SILENCE after `ms`; undefined once stopped. What comes later is dropped. */
  async #within<T>(promise: Promise<T>, ms: number): Promise<T | typeof SILENCE | undefined> {
    const { signal } = this.#stop
    promise.catch(() => undefined)
    if (signal.aborted) return undefined
    // For every event of every kind: a timer and a listener, and nothing dearer.
    const { promise: end, resolve } = Promise.withResolvers<typeof SILENCE | undefined>()
    const stopped = (): void => resolve(undefined)
    const cancel = this.#clock.after(ms, () => resolve(SILENCE))
    signal.addEventListener('abort', stopped)
    try {
      return await Promise.race([promise, end])
    } finally {
      cancel()
      signal.removeEventListener('abort', stopped)
    }
  }
}
