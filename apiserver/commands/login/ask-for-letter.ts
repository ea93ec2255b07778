/** What everything that has a letter written has in common: it may be asked for by anybody, and tells them nothing. */
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { LetterKind } from '../../../lib/model/letter.ts'
import { type Mailbox, mayWrite } from '../../mail/post-letter.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import type { Sql } from '../../store/sql.ts'
import type { OpenCall, Reply } from '../call.ts'
import type { LoginDependencies } from './dependencies.ts'

const of = (bucket: string): AttemptLimit => ({ bucket, most: 5, windowSeconds: 300 })

const tooMany = (retryAfterSeconds: number): DomainError =>
  new DomainError('mail_rate_limited', `Too many letters were asked for, wait ${retryAfterSeconds} s`, {
    retryAfterSeconds,
  })

/** @throws DomainError `mail_not_configured` */
const mailboxOf = ({ mailbox }: LoginDependencies): Mailbox => {
  if (mailbox === undefined) throw new DomainError('mail_not_configured', 'This service sends no mail')
  return mailbox
}

/**
 * Counts who asks and for which address, and has the letter written unless it was asked for too often. A client's address
 * is told so; of the letter's address nobody learns anything.
 * @throws DomainError `mail_not_configured`, `mail_rate_limited`
 */
export const askForLetter = async (
  deps: LoginDependencies,
  call: OpenCall,
  kind: LetterKind,
  email: string,
  write: (sql: Sql, mailbox: Mailbox) => Promise<void>,
): Promise<Reply<202, { readonly status: 'accepted' }>> => {
  const mailbox = mailboxOf(deps)
  const refused = await deps.database.transaction(async sql => {
    const client = await countAttempt(sql, of(`${kind}:client`), call.clientKey)
    // Not thrown: what was counted has to be kept.
    if (!client.allowed) return tooMany(client.retryAfterSeconds)
    const address = await countAttempt(sql, of(`${kind}:address`), email)
    if (address.allowed && (await mayWrite(sql, kind, email))) await write(sql, mailbox)
    return undefined
  })
  if (refused !== undefined) throw refused
  mailbox.wake()
  return { status: 202, body: { status: 'accepted' } }
}
