/** Puts a letter into the outbox, in the transaction of what it is about. */

import type { Sealer } from '../../lib/credentials/seal.ts'
import type { LetterKind } from '../../lib/model/letter.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { countAttempt, takeTurn } from '../store/login/attempts.ts'
import { insertLetter, withdrawLetters } from '../store/mail-outbox.ts'
import type { Sql } from '../store/sql.ts'
import { type LetterSecret, sealSecret } from './letter-secret.ts'

/** Between letters of a kind to one address. */
const APART_SECONDS = 60

/** What letters are written with. Without it mail is not configured. */
export interface Mailbox {
  readonly sealer: Sealer
  /** After the commit: somebody waits. */
  readonly wake: () => void
}

export interface LetterToPost {
  readonly kind: LetterKind
  readonly about: string
  readonly recipient: string
  readonly parameters: Readonly<Record<string, string>>
  readonly secret: LetterSecret
  readonly validSeconds: number
  /** false: it is kept and never sent, so that a request does the same whoever has an account. */
  readonly wanted?: boolean
  readonly notBefore?: Date | undefined
}

const bucketOf = (kind: LetterKind): string => `letter:${kind}`

/**
 * Whether a letter of a kind may go to an address now: one a minute. Counts it. Whoever is told no makes nothing that the
 * letter would have told, so that the earlier one holds on; its caller is answered as ever.
 */
export const mayWrite = async (sql: Sql, kind: LetterKind, address: string): Promise<boolean> =>
  (await countAttempt(sql, { bucket: bucketOf(kind), most: 1, windowSeconds: APART_SECONDS }, address)).allowed

/** For letters that nobody else would write again: when the next of a kind may go to an address. */
export const nextTurn = (sql: Sql, kind: LetterKind, address: string): Promise<Date> =>
  takeTurn(sql, bucketOf(kind), address, APART_SECONDS)

/** Keeps a letter, which replaces those about the same that did not leave yet. */
export const postLetter = async (sql: Sql, { sealer }: Mailbox, letter: LetterToPost): Promise<void> => {
  const { kind, about, recipient, parameters, secret, validSeconds, wanted = true, notBefore } = letter
  const id = newId('let')
  await withdrawLetters(sql, kind, about)
  const sealedSecret = sealSecret(sealer, id, secret)
  await insertLetter(sql, { id, kind, about, recipient, parameters, sealedSecret, wanted, validSeconds, notBefore })
}
