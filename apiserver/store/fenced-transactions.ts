import type { Database } from './database.ts'
import type { Sql } from './sql.ts'

/** The control-plane database as dispatch and projection use it. */
export type ControlPlaneSql = Sql & Pick<Database, 'transaction'>

/** Runs a transaction under a lease; see `Database.transaction`. @throws LeaseLostError when the lease has another term by now */
export type FencedTransactions = <T>(work: (sql: Sql) => Promise<T>) => Promise<T>

/** Somebody else holds the lease: nothing was written, and nothing more will be under this term. */
export class LeaseLostError extends Error {
  constructor(name: string, term: string) {
    super(`Cannot write under term ${term} of the lease "${name}": somebody else holds it`)
    this.name = 'LeaseLostError'
  }
}

/**
 * Transactions that commit only while the lease has this term. The row is locked against a take-over first, so between
 * that and the commit nobody else can act. A holder that falls silent in between is ended by the server's limit for
 * whole transactions, and the take-over goes on.
 */
export const fencedTransactions =
  (database: ControlPlaneSql, lease: { readonly name: string; readonly term: string }): FencedTransactions =>
  work =>
    database.transaction(async sql => {
      const held = await sql.row('select name from leases where name = $1 and term = $2 for key share', [
        lease.name,
        lease.term,
      ])
      if (held === undefined) throw new LeaseLostError(lease.name, lease.term)
      return work(sql)
    })
