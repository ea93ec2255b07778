/** Any thrown thing as an error with a code: what is not known is an internal error that tells the caller nothing. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import { isStoreError, type StoreErrorReason } from '../../runtime/store/store-error.ts'
import { CommitUnknownError } from '../store/database-error.ts'

const FROM_STORE: Readonly<Partial<Record<StoreErrorReason, () => DomainError>>> = {
  Unavailable: () =>
    new DomainError('store_unavailable', 'The resource store cannot be used right now; try again', {
      retryAfterSeconds: 1,
    }),
  TooManyRequests: () =>
    new DomainError('store_unavailable', 'The resource store is busy; try again', { retryAfterSeconds: 2 }),
  Conflict: () => new DomainError('write_conflict', 'The environment changed meanwhile; read it and try again'),
}

/** The error to answer, and whether it was foreseen: what was not is logged with its cause. */
export const problemFrom = (error: unknown): { readonly error: DomainError; readonly foreseen: boolean } => {
  if (error instanceof DomainError) return { error, foreseen: error.code !== 'internal_error' }
  if (error instanceof CommitUnknownError) {
    const message =
      'The answer of the control-plane database was lost; repeat the request with the same Idempotency-Key'
    return { error: new DomainError('database_unavailable', message, { retryAfterSeconds: 1 }), foreseen: true }
  }
  const fromStore = isStoreError(error) ? FROM_STORE[error.reason] : undefined
  if (fromStore !== undefined) return { error: fromStore(), foreseen: true }
  // Express and its router throw errors with a status for what they cannot decode.
  if (error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400))
    return { error: new DomainError('invalid_encoding', 'The URL holds a bad percent escape'), foreseen: true }
  return {
    error: new DomainError(
      'internal_error',
      'Something went wrong on our side; quote the request id when you report it',
    ),
    foreseen: false,
  }
}
