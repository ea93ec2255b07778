/** What a failure of the control-plane database means: gone for now, worth another try, the caller's fault, or a bug. */
import pg from 'pg'
import { DomainError } from '../../lib/errors/domain-error.ts'

/** The connection was lost or never came about, before a COMMIT was sent: whatever ran on it is rolled back. */
export class ConnectionLostError extends Error {
  /** Whether trying again at once is worth it: not after a deadline, which another try would only meet again. */
  readonly retryable: boolean

  constructor(cause: unknown, retryable: boolean) {
    super('The connection to the control-plane database was lost', { cause })
    this.name = 'ConnectionLostError'
    this.retryable = retryable
  }
}

/** The answer to a COMMIT was lost: it may have happened. Never retried blindly; look at what is there. */
export class CommitUnknownError extends Error {
  constructor(cause: unknown) {
    super('Whether the transaction was committed is not known', { cause })
    this.name = 'CommitUnknownError'
  }
}

/** The SQLSTATE of an error that the server reported. */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof pg.DatabaseError ? error.code : undefined

/** Whether a unique constraint or index of this name was violated. */
export const violatesUnique = (error: unknown, constraint: string): boolean =>
  error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === constraint

/** Whether a lock was not to be had within `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03'

// The driver reports its own deadlines as plain errors with these texts.
const DRIVER_DEADLINE = /^(Query read timeout|timeout exceeded when trying to connect|.*due to connection timeout)$/
// 57P01 admin shutdown, 57P02 crash shutdown, 57P03 cannot connect now, 57P05 idle session, 08 connection,
// 25P03/25P04 idle in transaction and transaction timeout: the server closes the connection after each.
const CLOSES_CONNECTION = /^(57P0[1235]|08...|25P0[34])$/

/** What the driver threw, told apart: the server's own words, a lost connection, or a mistake in our call. */
export const readDriverError = (error: unknown): unknown => {
  if (error instanceof pg.DatabaseError) {
    if (CLOSES_CONNECTION.test(error.code ?? '')) return new ConnectionLostError(error, !error.code?.startsWith('25'))
    return error
  }
  if (error instanceof TypeError || error instanceof RangeError) return error
  return new ConnectionLostError(error, !(error instanceof Error && DRIVER_DEADLINE.test(error.message)))
}

// Serialization failure, deadlock. A lock timeout is a wait too long for somebody else's transaction: once more helps.
const TRY_AGAIN = new Set(['40001', '40P01', '55P03'])

/** Whether the whole transaction may be run again: nothing of it can have happened. */
export const mayRetry = (error: unknown): boolean =>
  error instanceof ConnectionLostError ? error.retryable : TRY_AGAIN.has(sqlState(error) ?? '')

const RETRY_AFTER_SECONDS = 1

const unavailable = (cause: unknown): DomainError =>
  new DomainError('database_unavailable', 'The control-plane database cannot be used right now; try again', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  })

/**
 * The error as the rest of the API server knows it. Class 22 is bad input that got past validation; a unique violation
 * that no command foresaw is a write that met another one.
 */
export const toDomainError = (error: unknown): unknown => {
  if (error instanceof ConnectionLostError || error instanceof CommitUnknownError) return unavailable(error)
  const state = sqlState(error)
  if (state === undefined) return error
  if (TRY_AGAIN.has(state) || state === '57014' || state.startsWith('53')) return unavailable(error)
  if (state.startsWith('22'))
    return new DomainError('validation_failed', 'A value cannot be stored: it is out of range or badly encoded', {
      cause: error,
    })
  if (state === '23505')
    return new DomainError('write_conflict', 'Another call changed the same thing meanwhile; read it and try again', {
      cause: error,
    })
  return error
}
