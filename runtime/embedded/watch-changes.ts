/**
 * One watch: follows the log by version. Its place is the last version it delivered, so losing notifications, connections or
 * the whole database for a while loses and repeats nothing; it reads on where it stood.
 */
import type { Resource, ResourceType } from '../../lib/model/resource.ts'
import { type BackoffPolicy, backoffMs } from '../controller/backoff.ts'
import type { Log } from '../log/log.ts'
import type { Selector, WatchEvent } from '../store/resource-store.ts'
import { StoreError } from '../store/store-error.ts'
import { Bell } from './bell.ts'
import type { ChangeListener } from './change-listener.ts'
import { type ChangePage, type ChangeRow, readChanges } from './change-log.ts'
import { resourceFromRow, resourceOf } from './object-row.ts'
import type { StoreMetrics } from './store-metrics.ts'
import type { StorePool } from './store-pool.ts'

export interface WatchContext {
  readonly pool: StorePool
  readonly listener: ChangeListener
  readonly log: Log
  readonly metrics: StoreMetrics
  /** Aborts when the store closes. */
  readonly closed: AbortSignal
  readonly pollEveryMs: number
  readonly bookmarkEveryMs: number
}

export interface WatchOptions {
  readonly from: string
  readonly selector?: Selector
  readonly signal: AbortSignal
}

const RETRY: BackoffPolicy = { baseMs: 100, capMs: 2000 }

const matches = (selector: Selector | undefined, labels: Readonly<Record<string, string>> | null): boolean =>
  labels !== null && Object.entries(selector?.labels ?? {}).every(([key, value]) => labels[key] === value)

/** What a change is to somebody who sees only matching objects. */
const eventType = (change: ChangeRow, selector: Selector | undefined): 'added' | 'modified' | 'deleted' | undefined => {
  const before = matches(selector, change.previous_labels)
  const after = change.type !== 'deleted' && matches(selector, change.labels)
  if (before) return after ? 'modified' : 'deleted'
  return after ? 'added' : undefined
}

/** Refuses a place that the log cannot be followed from: compacted away, or never reached (another or a restored database). */
const checkPlace = (place: bigint, page: ChangePage): void => {
  if (place >= page.compacted && place <= page.head) return
  throw new StoreError('Gone', `Version ${place} is outside of the log (${page.compacted} to ${page.head}): list again`)
}

const parseVersion = (from: string): bigint => {
  if (/^\d{1,18}$/.test(from)) return BigInt(from)
  throw new StoreError('Invalid', `Cannot watch from "${from.slice(0, 40)}": expected a resourceVersion`)
}

/** See ResourceStore.watch. Outages are waited out; only `Gone`, the signal or closing the store end it. */
export async function* watchChanges<R extends Resource>(
  type: ResourceType<R>,
  { from, selector, signal }: WatchOptions,
  context: WatchContext,
): AsyncGenerator<WatchEvent<R>, void, undefined> {
  const { pool, log, metrics } = context
  const resource = resourceOf(type)
  const bell = new Bell()
  const ring = (): void => bell.ring()
  let place = parseVersion(from)
  let lastSaid = performance.now()
  let failures = 0
  const unsubscribe = context.listener.subscribe(resource, version => {
    if (version === undefined || version > place) bell.ring()
  })
  const stopped = AbortSignal.any([signal, context.closed])
  stopped.addEventListener('abort', ring)
  metrics.watching(resource, 1)
  try {
    while (!stopped.aborted) {
      bell.silence()
      // A read may take its whole deadline; an abort does not wait for it.
      const page = await unlessAborted(readPage(), stopped)
      if (page === undefined) {
        if (!isAborted(stopped)) await bell.heard(backoffMs(RETRY, failures++, Math.random))
        continue
      }
      checkPlace(place, page)
      for (const change of page.changes) {
        place = BigInt(change.version)
        const event = eventType(change, selector)
        if (event === undefined) continue
        metrics.delivered(resource)
        lastSaid = performance.now()
        yield { type: event, object: resourceFromRow(type, change) }
        if (isAborted(stopped)) break
      }
      if (isAborted(stopped) || !page.complete) continue
      place = page.head
      if (performance.now() - lastSaid >= context.bookmarkEveryMs) {
        lastSaid = performance.now()
        yield { type: 'bookmark', resourceVersion: String(place) }
      }
      if (!isAborted(stopped)) await bell.heard(Math.min(context.pollEveryMs, context.bookmarkEveryMs))
    }
    if (!signal.aborted) throw new StoreError('Unavailable', 'The resource store is closed')
  } finally {
    stopped.removeEventListener('abort', ring)
    unsubscribe()
    metrics.watching(resource, -1)
  }

  /** The next page, or undefined when the database does not answer. */
  async function readPage(): Promise<ChangePage | undefined> {
    try {
      const page = await readChanges(pool, resource, place, selector)
      failures = 0
      return page
    } catch (error) {
      if (!isAborted(stopped)) {
        metrics.failed('watch')
        log.warn({ err: error, resource }, 'Cannot read resource changes, trying again')
      }
      return undefined
    }
  }
}

/** A function, since the flag changes at every await, which control flow analysis does not see. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted

/**
 * The promise's value, or undefined as soon as the signal aborts. Not Promise.race with one promise per signal: that would
 * keep every value ever raced for as long as the watch lives.
 */
const unlessAborted = async <T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> => {
  let stop: (() => void) | undefined
  const aborted = new Promise<undefined>(resolve => {
    stop = () => resolve(undefined)
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (stop !== undefined) signal.removeEventListener('abort', stop)
  }
}
