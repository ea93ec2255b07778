/**
 * What agents' tokens were used for, written behind the requests, many at once: a statement a request would queue a busy
 * token's requests behind each other. A crash of the process loses what is not written yet, a quarter of a second at most.
 */
import { Counter, type Registry } from 'prom-client'
import type { Log } from '../../runtime/log/log.ts'
import type { Database } from '../store/database.ts'
import { insertTokenEvents, type NewTokenEvent } from '../store/token-events.ts'

const FLUSH_MS = 250
const FLUSH_AT = 500
const MAX_WAITING = 10_000

export class AgentRequests {
  readonly #database: Database
  readonly #log: Log
  readonly #dropped: Counter
  #waiting: NewTokenEvent[] = []
  #timer: NodeJS.Timeout | undefined
  /** Of all writes so far, the one among them that has not begun. */
  #written: Promise<void> = Promise.resolve()
  /** A write has not begun, and takes what is waiting when it does. */
  #isQueued = false

  constructor(database: Database, log: Log, registry: Registry) {
    this.#database = database
    this.#log = log
    this.#dropped = new Counter({
      name: 'svc_token_events_dropped_total',
      help: 'Requests of agents’ tokens that could not be kept for their history',
      registers: [registry],
    })
  }

  /** Keeps a request that was answered. Beyond a cap the oldest ones are dropped and counted. */
  record(event: Omit<NewTokenEvent, 'at'>): void {
    if (this.#waiting.length >= MAX_WAITING) this.#dropped.inc(this.#waiting.splice(0, FLUSH_AT).length)
    this.#waiting.push({ ...event, at: new Date() })
    if (this.#waiting.length >= FLUSH_AT) void this.flush()
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Writes what is waiting; never throws. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // One write at a time, and one after it: while the database is slow, events wait where the cap counts them.
    if (this.#waiting.length > 0 && !this.#isQueued) {
      this.#isQueued = true
      this.#written = this.#written.then(() => this.#write())
    }
    return this.#written
  }

  async #write(): Promise<void> {
    this.#isQueued = false
    const events = this.#waiting
    this.#waiting = []
    try {
      await this.#database.transaction(sql => insertTokenEvents(sql, events))
    } catch (error) {
      this.#dropped.inc(events.length)
      this.#log.warn({ err: error, events: events.length }, 'Cannot write what agents’ tokens were used for')
    }
  }
}
