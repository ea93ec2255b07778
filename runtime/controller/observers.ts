/** What control loops tell about themselves while they run; metrics.ts shows it. Times are milliseconds. */

/** What a queue tells about itself. */
export interface WorkQueueObserver {
  added(): void
  started(waitedMs: number): void
  finished(workedMs: number): void
  retried(): void
}

/** What can be asked of a queue at any moment. */
export interface WorkQueueState {
  depths(): ReadonlyMap<number, number>
  processingMs(): readonly number[]
}

/** How a reconcile ended, with controller-runtime's words; `requeue` is a retry after a write conflict. */
export type ReconcileOutcome = 'success' | 'requeue' | 'requeue_after' | 'error' | 'terminal_error'

/** What a controller tells about itself. */
export interface ControllerObserver {
  readonly queue: WorkQueueObserver
  reconciling(): void
  reconciled(outcome: ReconcileOutcome, tookMs: number): void
  timedOut(): void
}

export type ReflectorState = 'listing' | 'watching' | 'backoff' | 'stopped'

/** Why a list was made. */
export type ListReason = 'start' | 'gone' | 'regression'

/** How a watch ended. */
export type WatchEnd = 'closed' | 'idle' | 'gone' | 'regression' | 'error' | 'stopped'

/** What a reflector tells about itself. */
export interface ReflectorObserver {
  listed(reason: ListReason, missedEvents: number): void
  watchEnded(end: WatchEnd): void
  event(): void
}

/** How a reflector is. Times are milliseconds. */
export interface ReflectorHealth {
  readonly state: ReflectorState
  /** The first list is in. */
  readonly synced: boolean
  readonly resourceVersion: string | undefined
  /** Since the store last said anything. */
  readonly idleMs: number
  /** For how long it has been without a list or watch that worked; 0 while all is well. */
  readonly failingMs: number
  readonly lists: number
  readonly lastError: string | undefined
}

/** What a live view tells about itself: why it asked the store. */
export interface LiveViewObserver {
  asked(why: 'answer_lost' | 'cache_behind'): void
}

/** Makes an observer for each part. */
export interface ControlMetrics {
  /** For a queue that no controller owns. */
  forQueue(name: string): WorkQueueObserver
  /** Shows the depth and the work under way of a queue. */
  watchQueue(name: string, queue: WorkQueueState): void
  forController(name: string, concurrency: number): ControllerObserver
  /** `name` tells reflectors of one kind apart. */
  forReflector(name: string, health: () => ReflectorHealth): ReflectorObserver
  forLiveView(type: string): LiveViewObserver
}
