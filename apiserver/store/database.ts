/**
 * The control-plane database: a bounded pool in which everything has a deadline, transactions that are run again when
 * nothing of them can have happened, and errors that say what to do. Never hangs, never sends a COMMIT twice.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../runtime/log/log.ts'
import {
  CommitUnknownError,
  ConnectionLostError,
  mayRetry,
  readDriverError,
  sqlState,
  toDomainError,
} from './database-error.ts'
import { SharedReads } from './shared-reads.ts'
import { type Sql, together } from './sql.ts'
import { sqlOn } from './sql-on.ts'

/** How to reach the database, and the deadlines in milliseconds. */
export interface DatabaseOptions {
  readonly url: string
  readonly log: Log
  /** Connections at most, those that reads share among them; two at least. */
  readonly maxConnections?: number
  /** To connect, or to wait for a free connection. */
  readonly connectTimeoutMs?: number
  /** Of one statement, on the server; the driver gives up one second later. */
  readonly statementTimeoutMs?: number
  /** Of one wait for a lock. */
  readonly lockTimeoutMs?: number
  /** Of a whole transaction, on the server; by default half as long again as a statement may take, 15 s at least. */
  readonly transactionTimeoutMs?: number
  /** How long attempts may be repeated before the error is told. */
  readonly retryBudgetMs?: number
}

const MAX_ATTEMPTS = 8
const LEAST_TRANSACTION_MS = 15_000
/** Connections that single reads share, where there are at least so many in all. */
const SHARED_READS = 2
const SHARED_READS_FROM = 4

export class Database implements Sql {
  readonly #pool: pg.Pool
  readonly #reads: SharedReads
  readonly #log: Log
  readonly #retryBudgetMs: number
  #isStopped = false

  constructor(options: DatabaseOptions) {
    const { statementTimeoutMs = 10_000 } = options
    const { transactionTimeoutMs = Math.max(LEAST_TRANSACTION_MS, statementTimeoutMs * 1.5) } = options
    this.#log = options.log
    this.#retryBudgetMs = options.retryBudgetMs ?? 2000
    const { maxConnections = 10 } = options
    const forReads = maxConnections < SHARED_READS_FROM ? 1 : SHARED_READS
    const settings: pg.ClientConfig & { pipeline: boolean } = {
      connectionString: options.url,
      application_name: 'svc-apiserver',
      connectionTimeoutMillis: options.connectTimeoutMs ?? 3000,
      keepAlive: true,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + 1000,
      lock_timeout: options.lockTimeoutMs ?? 3000,
      idle_in_transaction_session_timeout: Math.min(LEAST_TRANSACTION_MS, transactionTimeoutMs),
      options: `-c transaction_timeout=${transactionTimeoutMs}`,
      // BEGIN and the first statement share one round trip.
      pipeline: true,
    }
    this.#reads = new SharedReads(settings, forReads)
    this.#pool = new pg.Pool({ ...settings, max: Math.max(1, maxConnections - forReads), idleTimeoutMillis: 60_000 })
    // A lost connection also fails what runs on it, which is where it is told; without a listener it would end the process.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', client => client.on('error', () => undefined))
  }

  /** Rows of one reading statement; sent again when the connection was lost. Write in `transaction`. @throws DomainError */
  async rows<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]> {
    return this.#persist(() => this.#reads.rows<Row>(text, values))
  }

  async row<Row>(text: string, values?: readonly unknown[]): Promise<Row | undefined> {
    return (await this.rows<Row>(text, values))[0]
  }

  /**
   * Runs `work` in one transaction (READ COMMITTED) and commits. `work` may be run several times, so it changes nothing
   * but through its `Sql`; whatever it throws rolls back. `close` sends the last statements, which travel with the COMMIT
   * in one round trip: locks that they take are held for the shortest time. One that fails rolls everything back.
   * @throws CommitUnknownError when the answer to COMMIT was lost; DomainError `database_unavailable` and those of
   * `toDomainError`; what `work` threw
   */
  async transaction<T>(
    work: (sql: Sql) => Promise<T>,
    close?: (sql: Sql, result: T) => readonly Promise<unknown>[],
  ): Promise<T> {
    return this.#persist(() => this.#attempt(work, close))
  }

  /** Closes every connection once it is free. What is asked for from now on is `database_unavailable`. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reads.stop()
    if (!this.#pool.ended && !this.#pool.ending) await this.#pool.end()
  }

  /** Connections in use and callers waiting for one, for metrics. */
  get load(): { readonly total: number; readonly idle: number; readonly waiting: number } {
    return {
      total: this.#pool.totalCount + this.#reads.connections,
      idle: this.#pool.idleCount,
      waiting: this.#pool.waitingCount,
    }
  }

  async #persist<T>(attempt: () => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + this.#retryBudgetMs
    for (let attempts = 1; ; attempts++) {
      try {
        if (this.#isStopped) throw new ConnectionLostError(new Error('The pool was stopped'), false)
        return await attempt()
      } catch (error) {
        if (error instanceof CommitUnknownError) throw error
        if (!mayRetry(error) || attempts >= MAX_ATTEMPTS || performance.now() >= giveUpAt) {
          const known = toDomainError(error)
          if (sqlState(known) !== undefined) this.#log.error({ sqlstate: sqlState(known) }, 'Unforeseen database error')
          throw known
        }
      }
      await sleep(Math.random() * 20 * 2 ** attempts)
    }
  }

  async #attempt<T>(
    work: (sql: Sql) => Promise<T>,
    close: ((sql: Sql, result: T) => readonly Promise<unknown>[]) | undefined,
  ): Promise<T> {
    const client = await this.#checkOut()
    let broken = true
    try {
      const begun = client.query('begin')
      begun.catch(() => undefined) // the first statement fails with it
      const result = await this.#workOrRollBack(client, work)
      await this.#commit(client, close?.(sqlOn(client), result) ?? [])
      broken = false
      return result
    } catch (error) {
      broken = !(error instanceof RolledBack)
      throw error instanceof RolledBack ? error.cause : error
    } finally {
      client.release(broken)
    }
  }

  async #workOrRollBack<T>(client: pg.PoolClient, work: (sql: Sql) => Promise<T>): Promise<T> {
    try {
      return await work(sqlOn(client))
    } catch (error) {
      const rolledBack = await client.query('rollback').then(
        () => true,
        () => false,
      )
      throw rolledBack ? new RolledBack(error) : error
    }
  }

  async #commit(client: pg.PoolClient, closing: readonly Promise<unknown>[]): Promise<void> {
    const closed = together(...closing).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    let outcome: string
    try {
      outcome = (await client.query('commit')).command
    } catch (error) {
      // Only these say for certain that it did not happen: a serialization failure or a deferred constraint.
      if (/^(40|23)/.test(sqlState(error) ?? '')) throw new RolledBack(error)
      throw new CommitUnknownError(error)
    }
    // After a statement that failed the server answers a COMMIT with ROLLBACK.
    const failure = await closed
    if (outcome !== 'COMMIT')
      throw new RolledBack(failure?.error ?? new Error('The work swallowed an error that ended its transaction'))
  }

  async #checkOut(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      throw readDriverError(error)
    }
  }
}

/** Inside this file only: the transaction is over and its connection as good as new. */
class RolledBack extends Error {
  constructor(cause: unknown) {
    super('Rolled back', { cause })
  }
}
