/** Idempotency keys: the answer that the first call with a key got, for everybody who repeats it. */
import type { Sql } from './sql.ts'

/** Which key of whom on what: both are SHA-256, so that nothing of the caller's stands in a dump. */
export interface IdempotencyScope {
  readonly scopeHash: Buffer
  readonly keyHash: Buffer
}

/** An answer as it is kept. */
export interface StoredReply {
  readonly fingerprint: Buffer
  readonly status: number
  readonly headers: Readonly<Record<string, string>> | null
  readonly body: Buffer | null
  readonly sealed: boolean
  readonly subjectId: string | null
  /** The secret in the body may not be shown any more. */
  readonly secretExpired: boolean
}

const REPLY = `k.fingerprint, k.status, k.headers, k.body, k.sealed, k.subject_id as "subjectId",
  k.sealed and (k.body is null or k.secret_expires_at <= now()) as "secretExpired"`

const TAKE = `insert into idempotency_keys as k (scope_hash, key_hash, fingerprint, expires_at)
  values ($1, $2, $3, now() + interval '24 hours')
  on conflict (scope_hash, key_hash) do update set fingerprint = excluded.fingerprint, status = null, headers = null,
    body = null, sealed = false, subject_id = null, secret_expires_at = null, created_at = now(), expires_at = excluded.expires_at
  where k.expires_at <= now() returning true as taken`
/**
 * Takes a key for this transaction: whoever else comes with it waits until the transaction ends. False when it was
 * taken before.
 * @throws SQLSTATE 55P03 when somebody holds it for longer than `lock_timeout`
 */
export const takeKey = async (sql: Sql, scope: IdempotencyScope, fingerprint: Buffer): Promise<boolean> =>
  (await sql.row(TAKE, [scope.scopeHash, scope.keyHash, fingerprint])) !== undefined

/** A key that was taken; without a status while the answer is not stored here: see `written-through.ts`. */
export type HeldKey = Omit<StoredReply, 'status'> & { readonly status: number | null }

const FIND = `select ${REPLY} from idempotency_keys k
  where k.scope_hash = $1 and k.key_hash = $2 and k.expires_at > now()`
export const findKey = (sql: Sql, scope: IdempotencyScope): Promise<HeldKey | undefined> =>
  sql.row<HeldKey>(FIND, [scope.scopeHash, scope.keyHash])

/** What is to be stored with a key that this transaction took. */
export interface ReplyToStore {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body: Buffer | undefined
  /** The body is sealed: kept for ten minutes, and `subjectId` names what was made for longer. */
  readonly sealedFor?: { readonly subjectId: string } | undefined
}

const STORE = `update idempotency_keys set status = $3, headers = $4::jsonb, body = $5, sealed = $6, subject_id = $7,
    secret_expires_at = case when $6 then now() + interval '10 minutes' end
  where scope_hash = $1 and key_hash = $2`
export const storeReply = async (sql: Sql, scope: IdempotencyScope, reply: ReplyToStore): Promise<void> => {
  await sql.rows(STORE, [
    scope.scopeHash,
    scope.keyHash,
    reply.status,
    reply.headers === undefined ? null : JSON.stringify(reply.headers),
    reply.body,
    reply.sealedFor !== undefined,
    reply.sealedFor?.subjectId,
  ])
}

const FORGET_SECRETS = `update idempotency_keys set body = null
  where sealed and body is not null and secret_expires_at <= now()`
const FORGET = `delete from idempotency_keys where ctid = any (array(
  select ctid from idempotency_keys where expires_at <= now() limit 5000 for update skip locked)) returning 1`
/** Forgets sealed bodies after ten minutes and keys after a day; answers how many keys. */
export const sweepKeys = async (sql: Sql): Promise<number> => {
  await sql.rows(FORGET_SECRETS)
  return (await sql.rows(FORGET)).length
}
