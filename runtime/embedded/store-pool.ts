/**
 * The bounded pool behind the embedded store: pipelined connections, a deadline on every statement, driver errors told as StoreErrors.
 */
import pg from 'pg'
import { StoreError } from '../store/store-error.ts'

/** A prepared statement: the name stands for the text, so that it is parsed once a connection. */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

export interface StorePoolOptions {
  readonly url: string
  /** Shown in pg_stat_activity. */
  readonly applicationName: string
  readonly maxConnections: number
}

const CONNECT_TIMEOUT_MS = 5000
const LOCK_TIMEOUT_MS = 5000
const STATEMENT_TIMEOUT_MS = 10_000
/** The driver's own deadline, for a server that does not even report its timeouts. */
const ANSWER_TIMEOUT_MS = 12_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000

/** What every connection of ours has in common. */
export const connectionSettings = (url: string, applicationName: string): pg.ClientConfig => ({
  connectionString: url,
  application_name: applicationName,
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  lock_timeout: LOCK_TIMEOUT_MS,
  statement_timeout: STATEMENT_TIMEOUT_MS,
  query_timeout: ANSWER_TIMEOUT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  keepAlive: true,
  options: '-c search_path=public,pg_temp',
})

/** SQLSTATEs that blame the input: text that no JSON or no database encoding can hold. */
const BAD_INPUT = new Set(['22P02', '22P05', '22021'])
/** SQLSTATEs that ask to try again: lock not available, serialization failure, deadlock. */
const BUSY = new Set(['55P03', '40001', '40P01'])

/** A driver's or server's error as a StoreError; a StoreError stays. */
export const asStoreError = (error: unknown): StoreError => {
  if (error instanceof StoreError) return error
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : ''
  if (BAD_INPUT.has(code))
    return new StoreError('Invalid', 'The resource holds text that cannot be stored', { cause: error })
  if (BUSY.has(code)) return new StoreError('TooManyRequests', 'The resource is busy, try again', { cause: error })
  return new StoreError('Unavailable', 'The resource store did not answer', { cause: error })
}

/** Waits for all, then throws the first failure: a pipelined connection must be drained before it is given back. */
const settled = async <T extends readonly unknown[]>(promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> => {
  const results = await Promise.allSettled(promises as readonly Promise<unknown>[])
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return results.map(result => (result as PromiseFulfilledResult<unknown>).value) as unknown as T
}

/** A bounded pool. All methods throw StoreErrors. */
export class StorePool {
  readonly #pool: pg.Pool
  #ended: Promise<void> | undefined

  constructor(options: StorePoolOptions) {
    // The driver's types do not know `pipeline` yet.
    const config: pg.PoolConfig & { pipeline: boolean } = {
      ...connectionSettings(options.url, options.applicationName),
      pipeline: true,
      max: options.maxConnections,
      idleTimeoutMillis: 5 * 60_000,
    }
    this.#pool = new pg.Pool(config)
    this.#pool.on('error', () => undefined) // an idle connection died: the pool has dropped it, the next call opens another
    // A connection that dies while a call holds it says so as an event too, even before the call has it in its hands.
    this.#pool.on('connect', client => client.on('error', () => undefined))
  }

  /** One statement, a transaction of its own. */
  async query<Row extends pg.QueryResultRow>(statement: Statement): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>(toQuery(statement))).rows
    } catch (error) {
      throw asStoreError(error)
    }
  }

  /**
   * Locks rows with `read`, lets `judge` decide on them, and writes what it answers, in one transaction of two round trips.
   * Nothing is written when `judge` answers undefined or throws; its own errors pass as they are.
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- names the columns, as the driver's own signature does
  async readJudgeWrite<Row extends pg.QueryResultRow, Written extends pg.QueryResultRow>(
    read: Statement,
    judge: (row: Row | undefined) => Statement | undefined,
  ): Promise<Written | undefined> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw asStoreError(error)
    })
    let broken = true
    try {
      const [, locked] = await settled<[unknown, pg.QueryResult<Row>]>([
        client.query('begin isolation level read committed'),
        client.query<Row>(toQuery(read)),
      ]).catch((error: unknown) => {
        throw asStoreError(error)
      })
      let write: Statement | undefined
      try {
        write = judge(locked.rows[0])
      } catch (error) {
        broken = !(await rolledBack(client))
        throw error
      }
      if (write === undefined) {
        broken = !(await rolledBack(client))
        return undefined
      }
      // A failed write turns the commit behind it into a rollback.
      const [written] = await settled<[pg.QueryResult<Written>, unknown]>([
        client.query<Written>(toQuery(write)),
        client.query('commit'),
      ]).catch((error: unknown) => {
        throw asStoreError(error)
      })
      broken = false
      return written.rows[0]
    } finally {
      client.release(broken)
    }
  }

  /** Waits for calls under way, then closes the connections. Harmless when repeated. */
  end(): Promise<void> {
    return (this.#ended ??= this.#pool.end())
  }
}

const toQuery = (statement: Statement): pg.QueryConfig => ({ ...statement, values: [...statement.values] })

const rolledBack = (client: pg.PoolClient): Promise<boolean> =>
  client.query('rollback').then(
    () => true,
    () => false,
  )
