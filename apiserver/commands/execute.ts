/**
 * How a command runs: ONE transaction holds the idempotency key, the work, its answer and its audit events; so after a
 * crash at any point either all of it happened or nothing, and whoever repeats the call learns which.
 *
 * The first call with a key takes it; others with the same key wait for that transaction, then get its answer byte for
 * byte. What the work itself refuses (404, 409, 422) is kept as an answer too, by a second transaction, because the first
 * is rolled back. Who may call is judged before this, so that a replay never outlives a right.
 */
import { ERROR_CODES } from '../../lib/errors/codes.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { insertAccountEvent, insertAuditEvent, type NewAccountEvent, type NewAuditEvent } from '../store/audit.ts'
import { CommitUnknownError, isLockTimeout } from '../store/database-error.ts'
import { findKey, type StoredReply, storeReply, takeKey } from '../store/idempotency.ts'
import type { Sql } from '../store/sql.ts'
import type { Call, Reply } from './call.ts'
import { type CallKey, callKeyOf } from './call-key.ts'
import type { CommandDependencies } from './dependencies.ts'
import { assertSameContent, refusalBytes, replay } from './replay.ts'
import { sealReply } from './seal-reply.ts'

/** What the work of a command came to. */
export interface Outcome<Status extends number, Body> {
  readonly status: Status
  /** undefined: no body. */
  readonly body: Body
  readonly audit?: readonly NewAuditEvent[]
  readonly accountEvents?: readonly NewAccountEvent[]
  /** The body holds a secret that may be shown for ten minutes; `subjectId` names what it belongs to. */
  readonly secret?: { readonly subjectId: string }
  /** An intent was written for this environment. */
  readonly wakes?: string
}

const inProgress = (): DomainError =>
  new DomainError('idempotency_in_progress', 'The first call with this Idempotency-Key is still running', {
    retryAfterSeconds: 1,
  })

/**
 * Takes the key, or finds whoever has taken it: with a reply that is kept under it, or without one as yet.
 * @throws DomainError `idempotency_in_progress` when the call that holds it takes too long, `idempotency_key_reused`
 */
export const takeKeyOrFindIt = async (
  sql: Sql,
  key: CallKey,
): Promise<'taken' | { readonly reply: StoredReply | undefined }> => {
  try {
    if (await takeKey(sql, key, key.fingerprint)) return 'taken'
  } catch (error) {
    throw isLockTimeout(error) ? inProgress() : error
  }
  const held = await findKey(sql, key)
  if (held === undefined) throw inProgress() // it ran out in this very moment
  assertSameContent(held, key)
  return { reply: held.status === null ? undefined : { ...held, status: held.status } }
}

/** Takes the key for this transaction (undefined), or answers what is kept under it. @throws DomainError as above */
const takeKeyOrReply = async (sql: Sql, key: CallKey): Promise<StoredReply | undefined> => {
  const taken = await takeKeyOrFindIt(sql, key)
  if (taken === 'taken') return undefined
  if (taken.reply === undefined) throw inProgress()
  return taken.reply
}

const isRefusal = (error: unknown): error is DomainError =>
  error instanceof DomainError &&
  [404, 409, 422].includes(ERROR_CODES[error.code].status) &&
  !error.code.startsWith('idempotency_') &&
  error.code !== 'write_conflict' // says nothing about the next attempt

type Ran<Status extends number, Body> =
  | { readonly stored: StoredReply }
  | { readonly outcome: Outcome<Status, Body>; readonly bytes: Buffer | undefined }

const run = async <Status extends number, Body>(
  deps: CommandDependencies,
  key: CallKey | undefined,
  work: (sql: Sql) => Promise<Outcome<Status, Body>>,
): Promise<Ran<Status, Body>> =>
  deps.database.transaction<Ran<Status, Body>>(
    async sql => {
      const stored = key === undefined ? undefined : await takeKeyOrReply(sql, key)
      if (stored !== undefined) return { stored }
      const outcome = await work(sql)
      const bytes = outcome.body === undefined ? undefined : Buffer.from(JSON.stringify(outcome.body))
      return { outcome, bytes }
    },
    (sql, ran) =>
      'stored' in ran
        ? []
        : [
            ...(key === undefined ? [] : [keep(sql, deps, key, ran.outcome, ran.bytes)]),
            ...(ran.outcome.accountEvents ?? []).map(event => insertAccountEvent(sql, event)),
            // Last: from here to the commit others who audit in this organization wait.
            ...(ran.outcome.audit ?? []).map(event => insertAuditEvent(sql, event)),
          ],
  )

const keep = (
  sql: Sql,
  { sealingKey }: CommandDependencies,
  key: CallKey,
  { status, secret }: Outcome<number, unknown>,
  bytes: Buffer | undefined,
): Promise<void> => {
  const sealed = secret !== undefined && bytes !== undefined
  const body = sealed ? sealReply(bytes, { ...key, sealingKey }) : bytes
  return storeReply(sql, key, { status, body, sealedFor: sealed ? secret : undefined })
}

/**
 * Keeps a refusal for whoever repeats the call; other errors say nothing about the next attempt. Never throws.
 * @returns the answer that counts instead, when another call with the key has been answered meanwhile
 */
export const keepRefusal = async (
  deps: CommandDependencies,
  key: CallKey | undefined,
  error: unknown,
  requestId: string,
): Promise<StoredReply | undefined> => {
  if (key === undefined || !isRefusal(error) || error.replayOf !== undefined) return undefined
  try {
    return await deps.database.transaction(async sql => {
      const stored = await takeKeyOrReply(sql, key)
      if (stored !== undefined) return stored
      await storeReply(sql, key, { status: ERROR_CODES[error.code].status, body: refusalBytes(error, requestId) })
      return undefined
    })
  } catch (failure) {
    deps.log.warn({ err: failure, requestId }, 'A refusal could not be kept for replays')
    return undefined
  }
}

/** How often a commit whose answer was lost is followed by another look. */
export const UNKNOWN_COMMITS = 3

/**
 * Runs a command, or answers what the first call with its key was answered.
 * @throws DomainError what the work refused, now or at the first call; `idempotency_in_progress`,
 * `idempotency_key_reused`, `idempotency_secret_expired`, `database_unavailable`
 */
export const execute = async <Status extends number, Body>(
  deps: CommandDependencies,
  call: Call,
  work: (sql: Sql) => Promise<Outcome<Status, Body>>,
): Promise<Reply<Status, Body>> => {
  const key = callKeyOf(call, deps)
  // The stored answer has this route's status and body: the key's scope names the route.
  const again = (stored: StoredReply, own: boolean): Reply<Status, Body> =>
    replay(stored, key, { sealingKey: deps.sealingKey, own }) as Reply<Status, Body>

  for (let unknown = 0; ; ) {
    try {
      const ran = await run(deps, key, work)
      if ('stored' in ran) return again(ran.stored, unknown > 0)
      const { status, wakes } = ran.outcome
      if (wakes !== undefined) deps.wakeDispatcher(wakes)
      return ran.bytes === undefined ? { status } : { status, body: ran.bytes }
    } catch (error) {
      // The key tells: if the commit happened, the answer is there; if not, nothing is, and the work runs for the first time.
      if (error instanceof CommitUnknownError && key !== undefined && ++unknown < UNKNOWN_COMMITS) continue
      const stored = await keepRefusal(deps, key, error, call.requestId)
      if (stored === undefined) throw error
      return again(stored, false)
    }
  }
}
