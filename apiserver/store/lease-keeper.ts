/**
 * Stands for election as long as it runs: takes a lease when it is free, renews it, notices that it was lost.
 *
 *   standing by -> holding -> (somebody else took it: `ended`) -> standing by
 *
 * One session of its own carries the lease and LISTENs, so that the death of a process frees its lease at once, and a
 * released lease is taken at once. While the database is away a holder keeps its term but does not lead: when it comes
 * back and nobody took the lease, work goes on where it stopped. Nothing that the database does ends the loop.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../runtime/log/log.ts'
import { endSession } from '../../runtime/postgres/end-session.ts'
import {
  acquireLease,
  LEASE_CHANNEL,
  type LeaseClaim,
  type LeaseSession,
  releaseLease,
  renewLease,
  sessionIdentity,
} from './leases.ts'

/** A lease while it is held. */
export interface HeldLease {
  readonly name: string
  readonly term: string
  /** Whether the holder may act outside the database right now: it renewed lately enough that nobody else can hold it. */
  leads(): boolean
}

/** What happens at an election. Nothing here may throw. */
export interface LeaseCandidate {
  /** The lease is held from now on. */
  elected(lease: HeldLease): void
  /** The lease was lost, or is about to be released. Awaited: nothing of this term runs when the next one begins. */
  ended(): Promise<void>
  /** Another holder is alive. */
  standingBy?(): void
  /** A notification on one of `channels`. */
  notified?(channel: string): void
}

export interface LeaseKeeperOptions {
  readonly name: string
  readonly connectionString: string
  readonly candidate: LeaseCandidate
  readonly log: Log
  /** Further channels to LISTEN on, for `notified`. */
  readonly channels?: readonly string[]
  /** How long a lease holds without a renewal, when its holder's session hangs. */
  readonly ttlMs?: number
  readonly renewEveryMs?: number
  readonly standbyPollMs?: number
}

const CONNECT_TIMEOUT_MS = 5_000
const LONGEST_RECONNECT_MS = 2_000
/** The database's clock may run faster than ours, and an answer may have been on its way. */
const TRUSTED_PART_OF_TTL = 0.7

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #claim: LeaseClaim
  readonly #stopping = new AbortController()
  #alarm = new AbortController()
  #running: Promise<void> | undefined
  #session: LeaseSession | undefined
  #term: string | undefined
  #renewedAt = Number.NEGATIVE_INFINITY

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#claim = { name: options.name, holder: randomUUID(), ttlMs: options.ttlMs ?? 15_000 }
  }

  /** Whether the lease is held and may be acted on. */
  get leads(): boolean {
    const trustedMs = this.#claim.ttlMs * TRUSTED_PART_OF_TTL
    return this.#term !== undefined && performance.now() - this.#renewedAt < trustedMs
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the term, releases the lease and closes the session. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#alarm.abort()
    await this.#running
  }

  /** A notification to the other candidates. Lost when the database is away: it is a hint, never the only way. */
  async notify(channel: string): Promise<void> {
    await this.#session?.client.query('select pg_notify($1, $2)', [channel, '']).catch(() => undefined)
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stopping.signal.aborted; failures++) {
      // A notification may be sent while a renewal is under way. The driver's types do not know `pipeline` yet.
      const settings: pg.ClientConfig & { pipeline: boolean } = {
        pipeline: true,
        connectionString: this.#options.connectionString,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        query_timeout: CONNECT_TIMEOUT_MS,
        statement_timeout: CONNECT_TIMEOUT_MS,
        lock_timeout: CONNECT_TIMEOUT_MS,
        keepAlive: true,
        application_name: `svc lease ${this.#options.name}`,
      }
      const client = new pg.Client(settings)
      // Without a listener a connection that breaks would end the process.
      client.on('error', () => this.#alarm.abort())
      try {
        await this.#keep(client, () => (failures = 0))
      } catch (error) {
        this.#options.log.warn({ err: error, lease: this.#options.name, failures }, 'The lease session will reconnect')
      } finally {
        this.#session = undefined
        // A severed link may never answer the farewell.
        await endSession(client)
      }
      await this.#wait(Math.min(LONGEST_RECONNECT_MS, 100 * 2 ** Math.min(failures, 10)))
    }
    await this.#endTerm()
  }

  /** Works with one session until it breaks or the keeper stops. */
  async #keep(client: pg.Client, healthy: () => void): Promise<void> {
    await client.connect()
    client.on('notification', ({ channel }) => {
      if (channel === LEASE_CHANNEL) this.#alarm.abort()
      else this.#options.candidate.notified?.(channel)
    })
    for (const channel of [LEASE_CHANNEL, ...(this.#options.channels ?? [])])
      await client.query(`listen ${client.escapeIdentifier(channel)}`)
    const session = { client, identity: await sessionIdentity(client) }
    this.#session = session
    const { renewEveryMs = 3_000, standbyPollMs = 500 } = this.#options
    while (!this.#stopping.signal.aborted) {
      this.#alarm = new AbortController()
      if (this.#term === undefined) await this.#stand(session)
      else await this.#renew(session, this.#term)
      healthy()
      await this.#wait(this.#term === undefined ? standbyPollMs : renewEveryMs)
    }
    const term = this.#term
    await this.#endTerm()
    if (term !== undefined) await releaseLease(session, this.#claim, term)
  }

  async #stand(session: LeaseSession): Promise<void> {
    const askedAt = performance.now()
    const term = await acquireLease(session, this.#claim)
    if (term === undefined) {
      this.#options.candidate.standingBy?.()
      return
    }
    this.#term = term
    this.#renewedAt = askedAt
    this.#options.log.info({ lease: this.#options.name, term }, 'Took the lease')
    this.#options.candidate.elected({ name: this.#options.name, term, leads: () => this.#leadsIn(term) })
  }

  async #renew(session: LeaseSession, term: string): Promise<void> {
    const askedAt = performance.now()
    if (await renewLease(session, this.#claim, term)) {
      this.#renewedAt = askedAt
      return
    }
    this.#options.log.warn({ lease: this.#options.name, term }, 'Lost the lease')
    await this.#endTerm()
  }

  #leadsIn(term: string): boolean {
    return this.#term === term && this.leads
  }

  async #endTerm(): Promise<void> {
    if (this.#term === undefined) return
    this.#term = undefined
    await this.#options.candidate.ended()
  }

  /** Waits, but not longer than until a notification, a broken session or the stop. */
  async #wait(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.#stopping.signal, this.#alarm.signal])
    await delay(ms, undefined, { signal }).catch(() => undefined)
  }
}
