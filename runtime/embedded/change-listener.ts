/**
 * Hears of changes through LISTEN and passes the word on. It may miss any number of them: readers keep their own place in the
 * log and poll as well, so this only makes them fast. After every (re)connection it wakes everybody.
 */
import pg from 'pg'
import { type BackoffPolicy, backoffMs } from '../controller/backoff.ts'
import type { Log } from '../log/log.ts'
import { endSession } from '../postgres/end-session.ts'
import { Bell } from './bell.ts'
import type { StoreMetrics } from './store-metrics.ts'
import { connectionSettings } from './store-pool.ts'

/** Called with the version of a change of the resource, or undefined when there may have been any. */
export type Wake = (version: bigint | undefined) => void

const RECONNECT: BackoffPolicy = { baseMs: 100, capMs: 5000 }
/** How often the connection is proved: one that died without a word is replaced. */
const PROBE_EVERY_MS = 30_000

export class ChangeListener {
  readonly #url: string
  readonly #name: string
  readonly #log: Log
  readonly #metrics: StoreMetrics
  readonly #wakes = new Map<string, Set<Wake>>()
  readonly #bell = new Bell()
  #stopped = false
  #loop: Promise<void> | undefined

  constructor(options: { url: string; applicationName: string; log: Log; metrics: StoreMetrics }) {
    this.#url = options.url
    this.#name = options.applicationName
    this.#log = options.log
    this.#metrics = options.metrics
  }

  /** Calls `wake` on changes of a resource until the answered function is called. The first call opens the connection. */
  subscribe(resource: string, wake: Wake): () => void {
    const wakes = this.#wakes.get(resource) ?? new Set()
    this.#wakes.set(resource, wakes.add(wake))
    if (!this.#stopped) this.#loop ??= this.#run()
    return () => {
      wakes.delete(wake)
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#loop
  }

  async #run(): Promise<void> {
    let failures = 0
    for (let connections = 0; !this.#stopped; ) {
      try {
        await this.#listen(() => {
          failures = 0
          if (connections++ > 0) this.#metrics.reconnected()
          this.#wakeAll()
        })
      } catch (error) {
        this.#metrics.failed('listener')
        this.#log.warn({ err: error }, 'Lost the connection that hears of resource changes, connecting again')
      }
      this.#bell.silence()
      if (!this.#isStopped()) await this.#bell.heard(backoffMs(RECONNECT, failures++, Math.random))
    }
  }

  /** A method, since the flag changes while the loop waits, which control flow analysis does not see. */
  #isStopped(): boolean {
    return this.#stopped
  }

  /** One connection's life; returns when stopped, throws when the connection is lost. */
  async #listen(connected: () => void): Promise<void> {
    const client = new pg.Client(connectionSettings(this.#url, this.#name))
    let lost: unknown
    const isLost = (): boolean => lost !== undefined
    const end = (error?: Error): void => {
      lost ??= error ?? new Error('The server closed the connection')
      this.#bell.ring()
    }
    client.on('error', end)
    client.on('end', () => end())
    client.on('notification', ({ payload }) => this.#heard(payload ?? ''))
    try {
      await client.connect()
      await client.query('listen svc_resources')
      connected()
      for (;;) {
        this.#bell.silence()
        if (isLost()) throw lost as Error
        if (this.#isStopped()) return
        await this.#bell.heard(PROBE_EVERY_MS)
        if (!isLost() && !this.#isStopped()) await client.query('select')
      }
    } finally {
      client.removeAllListeners('notification')
      // A server that hangs would keep us from connecting to its successor.
      await endSession(client)
    }
  }

  #heard(payload: string): void {
    const [, version, resource] = /^(\d+) (.+)$/.exec(payload) ?? []
    if (version === undefined || resource === undefined) return
    for (const wake of this.#wakes.get(resource) ?? []) wake(BigInt(version))
  }

  #wakeAll(): void {
    for (const wakes of this.#wakes.values()) for (const wake of wakes) wake(undefined)
  }
}
