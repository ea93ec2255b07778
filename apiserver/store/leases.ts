/**
 * Who may act: one row a lease, judged by the database's clock and by whether the holder's session is still there.
 *
 * `term` rises each time a lease is taken, so (name, term) names one holder for ever. Every write made under a lease
 * checks its term inside its own transaction, see fenced-transactions.ts; this file only moves the lease.
 *
 * Locks: a fenced transaction holds FOR KEY SHARE on the row. Renewing updates no key column, so it never waits for
 * those; taking the lease over selects FOR UPDATE, so it waits until the former holder's last transaction has ended, and
 * whoever comes later finds another term.
 */
import type pg from 'pg'

/** Where a lease lives: one session, whose end frees what it holds. */
export interface LeaseSession {
  readonly client: pg.ClientBase
  /** Names the session: its backend and since when it runs. */
  readonly identity: string
}

/** A lease that somebody may hold. `holder` names a process, not a session: a holder whose session broke keeps its term. */
export interface LeaseClaim {
  readonly name: string
  readonly holder: string
  readonly ttlMs: number
}

/** Notified when a lease was released; the payload is its name. */
export const LEASE_CHANNEL = 'svc_lease'

/** Whether the row may be taken: its time is over, or its holder's session is gone (a process that died, a severed link). */
const IS_FREE = `(expires_at <= clock_timestamp() or not exists (
  select from pg_stat_activity
   where pid::text = split_part(split_part(leases.holder, '@', 2), '/', 1)
     and (backend_start is null or extract(epoch from backend_start)::text = split_part(leases.holder, '/', 2))))`

/** The identity of the client's session, as a lease row holds it. */
export const sessionIdentity = async (client: pg.ClientBase): Promise<string> => {
  const { rows } = await client.query<{ identity: string }>(
    `select pid || '/' || extract(epoch from backend_start) as identity from pg_stat_activity where pid = pg_backend_pid()`,
  )
  const identity = rows[0]?.identity
  if (identity === undefined) throw new Error('Cannot find the session of a lease in pg_stat_activity')
  return identity
}

const holderText = (claim: LeaseClaim, session: LeaseSession): string => `${claim.holder}@${session.identity}`

/**
 * Takes the lease if it is free.
 * @returns the new term, or undefined while somebody else holds it
 */
export const acquireLease = async (session: LeaseSession, claim: LeaseClaim): Promise<string | undefined> => {
  const { client } = session
  // A look without a lock first: standing by must not disturb the holder.
  const { rows: seen } = await client.query<{ free: boolean }>(
    `select ${IS_FREE} as free from leases where name = $1`,
    [claim.name],
  )
  if (seen[0]?.free === false) return undefined
  await client.query('begin')
  try {
    await client.query(
      `insert into leases (name, holder, term, expires_at) values ($1, '', 0, '-infinity') on conflict do nothing`,
      [claim.name],
    )
    await client.query('select from leases where name = $1 for update', [claim.name])
    const { rows } = await client.query<{ term: string }>(
      `update leases set holder = $2, term = term + 1, expires_at = clock_timestamp() + $3 * interval '1 ms'
        where name = $1 and ${IS_FREE} returning term::text`,
      [claim.name, holderText(claim, session), claim.ttlMs],
    )
    await client.query('commit')
    return rows[0]?.term
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/**
 * Extends a held lease; a new session of the same holder takes it along.
 * @returns false when somebody else has taken it meanwhile
 */
export const renewLease = async (session: LeaseSession, claim: LeaseClaim, term: string): Promise<boolean> => {
  const { rowCount } = await session.client.query(
    `update leases set holder = $3, expires_at = clock_timestamp() + $4 * interval '1 ms' where name = $1 and term = $2`,
    [claim.name, term, holderText(claim, session), claim.ttlMs],
  )
  return rowCount === 1
}

/** Gives a held lease up and tells who waits for it; harmless when it is no longer held. */
export const releaseLease = async (session: LeaseSession, claim: LeaseClaim, term: string): Promise<void> => {
  await session.client.query(
    `with released as (
       update leases set holder = '', expires_at = '-infinity' where name = $1 and term = $2 returning name)
     select pg_notify($3, name) from released`,
    [claim.name, term, LEASE_CHANNEL],
  )
}
