/** Answers a repeated call with what the first one was answered. */
import type { ErrorCode } from '../../lib/errors/codes.ts'
import { DomainError, type FieldError } from '../../lib/errors/domain-error.ts'
import type { StoredReply } from '../store/idempotency.ts'
import type { Reply } from './call.ts'
import type { CallKey } from './call-key.ts'
import { openReply } from './seal-reply.ts'

interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
  readonly errors: readonly FieldError[]
  readonly requestId: string
}

/** A refusal as it is kept. */
export const refusalBytes = ({ code, message, details, errors }: DomainError, requestId: string): Buffer => {
  const refusal: Refusal = { code, message, details, errors, requestId }
  return Buffer.from(JSON.stringify(refusal))
}

const refuseAgain = (body: Buffer): never => {
  const { code, message, details, errors, requestId } = JSON.parse(body.toString()) as Refusal
  throw new DomainError(code, message, { details, errors, replayOf: requestId })
}

const ID_FIELDS: Readonly<Record<string, string>> = { key: 'api_key_id', inv: 'invitation_id' }
const idFieldOf = (subjectId: string | null): string => ID_FIELDS[subjectId?.split('_')[0] ?? ''] ?? 'token_id'

const openSecret = (stored: StoredReply, key: CallKey, sealingKey: Buffer): Buffer => {
  const body = stored.secretExpired || stored.body === null ? undefined : openReply(stored.body, { ...key, sealingKey })
  if (body !== undefined) return body
  throw new DomainError(
    'idempotency_secret_expired',
    'What was made by the first call with this Idempotency-Key is there, and its secret can no longer be shown',
    { details: { [idFieldOf(stored.subjectId)]: stored.subjectId } },
  )
}

/** @throws DomainError `idempotency_key_reused` */
export const assertSameContent = ({ fingerprint }: Pick<StoredReply, 'fingerprint'>, key: CallKey): void => {
  if (!fingerprint.equals(key.fingerprint))
    throw new DomainError('idempotency_key_reused', 'This Idempotency-Key was used for a request with other content')
}

/**
 * The stored answer, marked as a replay unless it is the `own` answer of a call whose commit went unheard.
 * @throws DomainError the stored refusal; `idempotency_key_reused`, `idempotency_secret_expired`
 */
export const replay = (
  stored: StoredReply,
  key: CallKey | undefined,
  { sealingKey, own }: { readonly sealingKey: Buffer; readonly own: boolean },
): Reply => {
  if (key === undefined) throw new Error('Only a call with a key has a stored answer')
  assertSameContent(stored, key)
  if (stored.status >= 400 && stored.body !== null) return refuseAgain(stored.body)
  const body = stored.sealed ? openSecret(stored, key, sealingKey) : (stored.body ?? undefined)
  const headers = { ...stored.headers, ...(own ? {} : { 'Idempotency-Replayed': 'true' }) }
  return { status: stored.status, headers, ...(body === undefined ? {} : { body }) }
}
