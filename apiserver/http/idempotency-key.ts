import { DomainError } from '../../lib/errors/domain-error.ts'

const VISIBLE = /^[\u0021-\u007e]{1,255}$/

/**
 * The key of an Idempotency-Key header, raw or quoted (one pair of quotes is stripped). Two headers arrive joined by
 * a comma and a space, and a space is not allowed: so a repeated header is refused as well.
 * @throws DomainError `idempotency_key_invalid`
 */
export const parseIdempotencyKey = (header: string | string[] | undefined): string | undefined => {
  if (header === undefined) return undefined
  const text = typeof header === 'string' ? header : header.join(', ')
  const key = text.length > 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
  if (!VISIBLE.test(key))
    throw new DomainError(
      'idempotency_key_invalid',
      'Idempotency-Key must be given once, 1-255 visible ASCII characters',
    )
  return key
}
