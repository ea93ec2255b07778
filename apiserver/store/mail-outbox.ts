/** Letters to be sent: kept with what they are about, delivered by whichever replica leases them. */
import type { SealPlace } from '../../lib/credentials/seal.ts'
import type { LetterKind } from '../../lib/model/letter.ts'
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

/** Where what is secret in a letter lies. */
export const letterPlace = (letterId: string): SealPlace => ({
  table: 'mail_outbox',
  column: 'sealed_secret',
  rowId: letterId,
  version: 1n,
})

/** A letter to be kept. */
export interface NewLetter {
  readonly id: string
  readonly kind: LetterKind
  /** An address or an id: letters of a kind about the same thing replace each other. */
  readonly about: string
  readonly recipient: string
  readonly parameters: Readonly<Record<string, string>>
  readonly sealedSecret: string | null
  /** false: nobody is to get it. */
  readonly wanted: boolean
  readonly validSeconds: number
  /** Not before; undefined: at once. */
  readonly notBefore?: Date | undefined
}

/** A letter in the hands of one replica. */
export interface LeasedLetter {
  readonly id: string
  readonly kind: LetterKind
  readonly recipient: string
  readonly parameters: Readonly<Record<string, string>>
  readonly sealedSecret: string | null
  /** This one among them. */
  readonly attempts: number
  readonly createdAt: Date
}

const INSERT = `insert into mail_outbox (id, kind, about, recipient, parameters, sealed_secret, state, next_attempt_at, expires_at)
  values ($1, $2, $3, $4, $5::jsonb, case when $7 then $6 end, case when $7 then 'waiting' else 'unwanted' end,
    coalesce($9, now()), now() + make_interval(secs => $8))`
export const insertLetter = async (sql: Sql, letter: NewLetter): Promise<void> => {
  const { id, kind, about, recipient, parameters, sealedSecret, wanted, validSeconds, notBefore } = letter
  const values = [id, kind, about, recipient, JSON.stringify(parameters), sealedSecret, wanted, validSeconds, notBefore]
  await sql.rows(INSERT, values)
}

const WITHDRAW = `update mail_outbox set state = 'withdrawn', sealed_secret = null, lease = null, leased_until = null, settled_at = now()
  where kind = $1 and about = $2 and state = 'waiting'`
/** Takes back letters that did not leave: what they tell holds no more. */
export const withdrawLetters = async (sql: Sql, kind: LetterKind, about: string): Promise<void> => {
  await sql.rows(WITHDRAW, [kind, about])
}

const LEASE = `update mail_outbox as o set lease = $1, leased_until = now() + make_interval(secs => $2), attempts = attempts + 1
  where id in (select id from mail_outbox
    where state = 'waiting' and next_attempt_at <= now() and expires_at > now()
      and (leased_until is null or leased_until <= now())
    order by next_attempt_at limit $3 for update skip locked)
  returning ${columns('o', ['id', 'kind', 'recipient', 'parameters', 'sealed_secret', 'attempts', 'created_at'])}`
/** Takes letters whose time has come, for a while in which nobody else does. A lease that ran out is anybody's. */
export const leaseLetters = (
  sql: Sql,
  lease: string,
  seconds: number,
  most: number,
): Promise<readonly LeasedLetter[]> => sql.rows<LeasedLetter>(LEASE, [lease, seconds, most])

const SETTLE = `update mail_outbox set state = $3, sealed_secret = null, lease = null, leased_until = null, last_error = $4,
    settled_at = now()
  where id = $1 and lease = $2`
/** The end of a letter: with it goes what was secret in it. */
export const settleLetter = async (
  sql: Sql,
  id: string,
  lease: string,
  state: 'sent' | 'given_up',
  error?: string,
): Promise<void> => {
  await sql.rows(SETTLE, [id, lease, state, error])
}

const POSTPONE = `update mail_outbox set lease = null, leased_until = null, last_error = $4,
    next_attempt_at = now() + make_interval(secs => $3)
  where id = $1 and lease = $2`
/** It is tried again later. */
export const postponeLetter = async (
  sql: Sql,
  id: string,
  lease: string,
  seconds: number,
  error: string,
): Promise<void> => {
  await sql.rows(POSTPONE, [id, lease, seconds, error])
}

const GIVE_UP = `update mail_outbox as o set state = 'given_up', sealed_secret = null, lease = null, leased_until = null, settled_at = now()
  where id in (select id from mail_outbox where state = 'waiting' and expires_at <= now()
    and (leased_until is null or leased_until <= now()) limit 500 for update skip locked)
  returning ${columns('o', ['id', 'kind', 'attempts', 'last_error'])}`
/** Gives up what nobody needs any more. */
export const giveUpExpiredLetters = (
  sql: Sql,
): Promise<
  readonly {
    readonly id: string
    readonly kind: LetterKind
    readonly attempts: number
    readonly lastError: string | null
  }[]
> => sql.rows(GIVE_UP)

const WAITING = `select count(*) as n, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as "oldestSeconds"
  from mail_outbox where state = 'waiting'`
/** How many letters wait, and for how long the first of them has. */
export const waitingLetters = async (sql: Sql): Promise<{ readonly n: number; readonly oldestSeconds: number }> =>
  (await sql.row<{ n: number; oldestSeconds: number }>(WAITING)) ?? { n: 0, oldestSeconds: 0 }

const SWEEP = `delete from mail_outbox where id in (select id from mail_outbox
  where created_at <= now() - case when state = 'unwanted' then interval '1 day' else interval '30 days' end
    and state <> 'waiting' limit 1000 for update skip locked)`
/** Forgets letters that left long ago. */
export const sweepLetters = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
