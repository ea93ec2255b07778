/**
 * The work queue of a control loop: which keys need a look, each at most once in the queue and never on two workers.
 *
 * A key is *ready* (wants a worker), *delayed* (wants one later), *processing* (a worker has it) or none of these. A key
 * added while it is processed becomes ready again when its worker is done, so that what changed meanwhile is seen.
 * Invariant: every `add` is followed by a `get` of that key that starts after it; every `addAfter` by one that starts
 * after its delay. It never looks at what a key means.
 */
import { type BackoffPolicy, backoffMs, RETRY_BACKOFF } from './backoff.ts'
import { type Clock, systemClock } from './clock.ts'
import { DelayHeap } from './delay-heap.ts'
import type { WorkQueueObserver } from './observers.ts'
import { ReadyKeys } from './ready-keys.ts'

/**
 * Higher ones are served first; within one, first come, first served. `news`: what was begun can go on, so it goes before new wishes:
 * of many that are made at once those that are begun are done, and none waits for all the others to be begun.
 */
export const PRIORITY = { news: 20, user: 10, event: 0, resync: -100 } as const

/** A key handed to a worker, which must call `done(key)` when it is finished. */
export interface WorkItem {
  readonly key: string
  readonly priority: number
}

export interface WorkQueueOptions {
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
  readonly backoff?: BackoffPolicy
  readonly observer?: WorkQueueObserver
}

interface Waiting {
  priority: number
  readonly since: number
}

export class WorkQueue {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #backoff: BackoffPolicy
  readonly #observer: WorkQueueObserver | undefined
  /** Keys that want a worker, the ones being processed included. */
  readonly #dirty = new Map<string, Waiting>()
  /** Those of them that a worker may take now. */
  readonly #ready = new ReadyKeys()
  readonly #processing = new Map<string, number>()
  readonly #failures = new Map<string, number>()
  readonly #delayed = new DelayHeap()
  #waiters: ((item: WorkItem | undefined) => void)[] = []
  #cancelTimer: (() => void) | undefined
  #timerDueAt = Number.POSITIVE_INFINITY
  #shuttingDown = false
  readonly #drained = Promise.withResolvers<undefined>()

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#backoff = options.backoff ?? RETRY_BACKOFF
    this.#observer = options.observer
  }

  /** Wants a look at the key as soon as may be. */
  add(key: string, priority: number = PRIORITY.event): void {
    if (this.#shuttingDown) return
    const waiting = this.#dirty.get(key)
    if (waiting !== undefined) {
      if (priority <= waiting.priority) return
      if (this.#ready.has(key)) this.#ready.add(key, priority)
      waiting.priority = priority
      return
    }
    this.#observer?.added()
    this.#dirty.set(key, { priority, since: this.#clock.now() })
    if (this.#processing.has(key)) return
    this.#ready.add(key, priority)
    this.#serve()
  }

  /**
   * Wants a look at the key after a delay. A key that is delayed already keeps the earlier time; an `add` meanwhile does
   * not call the delay off.
   */
  addAfter(key: string, delayMs: number, priority: number = PRIORITY.event): void {
    if (this.#shuttingDown) return
    if (!(delayMs > 0)) {
      this.add(key, priority)
      return
    }
    this.#delayed.add(key, this.#clock.now() + delayMs, priority)
    this.#setTimer()
  }

  /** Wants another look at a key that failed: later each time, until `forget`. */
  addRateLimited(key: string, priority: number = PRIORITY.event): void {
    if (this.#shuttingDown) return
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#observer?.retried()
    this.addAfter(key, backoffMs(this.#backoff, failures, this.#random), priority)
  }

  /** The key succeeded, or will not be tried again: its next failure starts from the shortest wait. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** How often the key failed in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** The next key, once there is one. undefined: shut down and nothing left, the worker may go. */
  get(): Promise<WorkItem | undefined> {
    const item = this.#take()
    if (item !== undefined) return Promise.resolve(item)
    if (this.#isFinished()) return Promise.resolve(undefined)
    return new Promise(resolve => this.#waiters.push(resolve))
  }

  /** The worker has finished with the key. */
  done(key: string): void {
    const since = this.#processing.get(key)
    if (since === undefined) return
    this.#processing.delete(key)
    this.#observer?.finished(this.#clock.now() - since)
    const waiting = this.#dirty.get(key)
    if (waiting !== undefined) this.#ready.add(key, waiting.priority)
    this.#serve()
  }

  /**
   * Takes no more keys and forgets the delayed ones. Ready keys are still handed out, unless `discardReady`; keys that
   * were added while they are processed count as ready.
   */
  shutDown(options: { readonly discardReady?: boolean } = {}): void {
    this.#shuttingDown = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#delayed.clear()
    if (options.discardReady === true) {
      this.#ready.clear()
      this.#dirty.clear()
    }
    this.#serve()
  }

  /** Resolves once the queue was shut down, nothing is ready and no key is processed. */
  get drained(): Promise<undefined> {
    return this.#drained.promise
  }

  /** Keys that a worker may take, by priority. */
  depths(): ReadonlyMap<number, number> {
    return this.#ready.depths()
  }

  /** Keys that wait for their time. */
  get delayedCount(): number {
    return this.#delayed.size
  }

  /** For how long each key that is processed has been, in milliseconds. */
  processingMs(): readonly number[] {
    const now = this.#clock.now()
    return [...this.#processing.values()].map(since => now - since)
  }

  #take(): WorkItem | undefined {
    const item = this.#ready.take()
    if (item === undefined) return undefined
    const now = this.#clock.now()
    this.#observer?.started(now - (this.#dirty.get(item.key)?.since ?? now))
    this.#dirty.delete(item.key)
    this.#processing.set(item.key, now)
    return item
  }

  #isFinished(): boolean {
    return this.#shuttingDown && this.#dirty.size === 0
  }

  /** Gives ready keys to waiting workers; after a shutdown, lets the workers go once nothing can become ready. */
  #serve(): void {
    while (this.#waiters.length > 0) {
      const item = this.#take()
      if (item === undefined) break
      this.#waiters.shift()?.(item)
    }
    if (!this.#isFinished()) return
    for (const resolve of this.#waiters.splice(0)) resolve(undefined)
    if (this.#processing.size === 0) this.#drained.resolve(undefined)
  }

  #setTimer(): void {
    const dueAt = this.#delayed.nextDueAt()
    if (dueAt === undefined || dueAt >= this.#timerDueAt) return
    this.#cancelTimer?.()
    this.#timerDueAt = dueAt
    this.#cancelTimer = this.#clock.after(dueAt - this.#clock.now(), () => {
      this.#timerDueAt = Number.POSITIVE_INFINITY
      this.#cancelTimer = undefined
      for (const { key, priority } of this.#delayed.takeDue(this.#clock.now())) this.add(key, priority)
      this.#setTimer()
    })
  }
}
