/** From an Authorization header to a bearer credential, without any I/O. */
import { DomainError } from '../../../lib/errors/domain-error.ts'

/** Tokens of identity providers are long; of ours each kind has its own length. */
const MAX_LENGTH = 4096
const BEARER = /^bearer +(\S*) *$/i

/** What every credential gets that is unknown, revoked, expired or malformed: one error for all, so that none can be told apart. */
export const invalidToken = (): DomainError =>
  new DomainError('invalid_token', 'The bearer token is not valid: unknown, expired or revoked')

/**
 * The token of a header.
 * @throws DomainError `unauthenticated` without a bearer credential, `invalid_token` when it can be none
 */
export const bearerToken = (header: string | undefined): string => {
  const match = header === undefined ? null : BEARER.exec(header)
  if (match === null) throw new DomainError('unauthenticated', 'This call needs Authorization: Bearer <token>')
  const token = match[1] ?? ''
  if (token === '' || token.length > MAX_LENGTH) throw invalidToken()
  return token
}
