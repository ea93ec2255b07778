/**
 * Calls a reconcile function for every key that needs a look, some at a time, one key never twice at once.
 * Level-based: a key says *which* resource, never what happened to it. Whatever a reconcile throws, the loop goes on.
 *
 * | reconcile                | then                                                                  |
 * | ------------------------ | --------------------------------------------------------------------- |
 * | returns nothing          | the key rests until something changes                                 |
 * | returns requeueAfterMs   | looked at again after that time                                       |
 * | throws TerminalError     | logged, counted, not retried                                          |
 * | throws StoreError Conflict | retried with back-off, silently: somebody else wrote first          |
 * | throws anything else     | logged, counted, retried with back-off                                |
 */
import { randomUUID } from 'node:crypto'
import { keyOf, keyText, type Resource, type ResourceKey } from '../../lib/model/resource.ts'
import type { Log } from '../log/log.ts'
import { isStoreError } from '../store/store-error.ts'
import type { Cache, CacheEvent } from './cache.ts'
import { type Clock, sleep, systemClock } from './clock.ts'
import type { ControllerObserver, ControlMetrics, ReconcileOutcome } from './observers.ts'
import { eventPriority, type Predicate } from './predicates.ts'
import { TerminalError } from './terminal-error.ts'
import { PRIORITY, type WorkItem, WorkQueue } from './work-queue.ts'

export interface ReconcileContext {
  /** Aborts at the deadline and when the controller stops. */
  readonly signal: AbortSignal
  /** Carries controller, namespace, name and the id of this reconcile. */
  readonly log: Log
  /** When the signal aborts, in milliseconds of the controller's clock. */
  readonly deadline: number
}

export interface ReconcileResult {
  /** Infinity: never. */
  readonly requeueAfterMs?: number
}

// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a reconcile that has nothing to say need not say so
export type Reconcile = (key: ResourceKey, context: ReconcileContext) => Promise<ReconcileResult | void>

export interface ControllerOptions {
  readonly name: string
  readonly reconcile: Reconcile
  readonly log: Log
  /** Reconciles at once. */
  readonly concurrency?: number
  readonly deadlineMs?: number
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
  readonly metrics?: ControlMetrics | undefined
}

/** How a cache's events become keys. */
export interface WatchOptions<R extends Resource> {
  /** Which keys an event is about; the object's own by default. */
  readonly keys?: (event: CacheEvent<R>) => readonly ResourceKey[]
  readonly predicate?: Predicate<R>
  /** See PRIORITY; by what happened, by default. */
  readonly priority?: (event: CacheEvent<R>) => number
}

/** How long a reconcile that ignores its deadline may still hold its worker. */
const GRACE_MS = 5_000

export class Controller {
  readonly name: string
  readonly queue: WorkQueue
  readonly #options: ControllerOptions
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #observer: ControllerObserver | undefined
  readonly #stopping = new AbortController()
  readonly #unsubscribe: (() => void)[] = []
  #workers: Promise<void>[] = []

  constructor(options: ControllerOptions) {
    this.name = options.name
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#concurrency = options.concurrency ?? 16
    this.#observer = options.metrics?.forController(this.name, this.#concurrency)
    this.queue = new WorkQueue({
      clock: this.#clock,
      ...(options.random && { random: options.random }),
      ...(this.#observer && { observer: this.#observer.queue }),
    })
    options.metrics?.watchQueue(this.name, this.queue)
  }

  /** Enqueues keys for a cache's events, from what it holds now on. */
  watch<R extends Resource, Index extends string>(cache: Cache<R, Index>, options: WatchOptions<R> = {}): void {
    const { keys, predicate, priority = eventPriority } = options
    this.#unsubscribe.push(
      cache.subscribe(event => {
        if (predicate !== undefined && !predicate(event)) return
        for (const key of keys?.(event) ?? [keyOf(event.object)]) this.enqueue(key, priority(event))
      }),
    )
  }

  /** Wants a look at a key as soon as may be. */
  enqueue(key: ResourceKey, priority: number = PRIORITY.event): void {
    this.queue.add(keyText(key), priority)
  }

  /** Wants a look at a key after a time. */
  enqueueAfter(key: ResourceKey, delayMs: number, priority: number = PRIORITY.event): void {
    this.queue.addAfter(keyText(key), delayMs, priority)
  }

  /** Starts the workers. Before the caches that a reconcile reads are synced, this is too early. */
  start(): void {
    if (this.#workers.length > 0 || this.#stopping.signal.aborted) return
    this.#workers = Array.from({ length: this.#concurrency }, () => this.#work())
  }

  /**
   * Takes no more keys, aborts the signals of what runs, and waits for it, but not longer than `drainMs`.
   * @returns whether everything ended in time
   */
  async stop(drainMs = 8_000): Promise<boolean> {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe()
    this.queue.shutDown({ discardReady: true })
    this.#stopping.abort(new Error(`The controller ${this.name} is stopping`))
    const waited = new AbortController()
    const drained = this.queue.drained.then(() => true)
    const late = sleep(this.#clock, drainMs, waited.signal).then(() => false)
    const inTime = await Promise.race([drained, late])
    waited.abort()
    return inTime
  }

  async #work(): Promise<void> {
    for (let item = await this.queue.get(); item !== undefined; item = await this.queue.get()) await this.#process(item)
  }

  /** Runs one reconcile; returns when it ended, or when it has outlived its deadline so long that its worker is better used elsewhere. */
  async #process(item: WorkItem): Promise<void> {
    const { deadlineMs = 60_000 } = this.#options
    const observer = this.#observer
    const key = keyFrom(item.key)
    const log = this.#options.log.child({ controller: this.name, ...key, reconcileId: randomUUID() })
    const startedAt = this.#clock.now()
    const deadline = new AbortController()
    const cancelDeadline = this.#clock.after(deadlineMs, () => {
      observer?.timedOut()
      deadline.abort(new Error(`Cannot finish reconciling ${item.key} within ${deadlineMs} ms`))
    })
    const signal = AbortSignal.any([this.#stopping.signal, deadline.signal])
    observer?.reconciling()
    const ended = this.#settle(item, key, { signal, log, deadline: startedAt + deadlineMs }).then(outcome => {
      cancelDeadline()
      observer?.reconciled(outcome, this.#clock.now() - startedAt)
      this.queue.done(item.key)
    })
    const { promise: hung, resolve: giveUp } = Promise.withResolvers<'hung'>()
    const cancelGrace = this.#clock.after(deadlineMs + GRACE_MS, () => giveUp('hung'))
    if ((await Promise.race([ended, hung])) === 'hung')
      // Its key stays locked, so that it never runs twice at once; other keys go on.
      log.error({ deadlineMs }, 'A reconcile ignores its deadline: its worker goes on without it')
    cancelGrace()
  }

  /** Never rejects. */
  async #settle(item: WorkItem, key: ResourceKey, context: ReconcileContext): Promise<ReconcileOutcome> {
    const { log } = context
    try {
      const { requeueAfterMs } = (await this.#options.reconcile(key, context)) ?? {}
      if (Number.isNaN(requeueAfterMs)) throw new RangeError('Cannot requeue after NaN ms')
      this.queue.forget(item.key)
      if (requeueAfterMs === undefined) return 'success'
      // What it asked for itself is no news.
      this.queue.addAfter(item.key, requeueAfterMs, Math.min(item.priority, PRIORITY.user))
      return 'requeue_after'
    } catch (error) {
      if (error instanceof TerminalError) {
        this.queue.forget(item.key)
        log.error({ err: error }, 'Reconcile failed and is not retried')
        return 'terminal_error'
      }
      // Nothing is retried by a controller that stops: the next one starts with every key.
      if (this.#stopping.signal.aborted) {
        log.info({ err: error }, 'Reconcile was interrupted by the stop')
        return 'error'
      }
      this.queue.addRateLimited(item.key, item.priority)
      if (isStoreError(error, 'Conflict')) {
        log.debug({ err: error }, 'Reconcile met a newer version')
        return 'requeue'
      }
      log.warn({ err: error, failures: this.queue.failures(item.key) }, 'Reconcile failed and will be retried')
      return 'error'
    }
  }
}

const keyFrom = (text: string): ResourceKey => {
  const slash = text.indexOf('/')
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
