import type { Violation } from '../../lib/model/resource.ts'

/** Why a store refused or failed; the names are those of Kubernetes' Status reasons where it has one. */
export type StoreErrorReason =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Invalid'
  | 'Forbidden'
  | 'Gone'
  | 'TooManyRequests'
  | 'Unavailable'

/** The one error a ResourceStore throws. `Unavailable` and `TooManyRequests` may be retried as they are. */
export class StoreError extends Error {
  readonly reason: StoreErrorReason
  readonly violations: readonly Violation[]

  constructor(
    reason: StoreErrorReason,
    message: string,
    options: { readonly violations?: readonly Violation[]; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'StoreError'
    this.reason = reason
    this.violations = options.violations ?? []
  }
}

/** Whether an error is a StoreError of one of these reasons. */
export const isStoreError = (error: unknown, ...reasons: StoreErrorReason[]): error is StoreError =>
  error instanceof StoreError && (reasons.length === 0 || reasons.includes(error.reason))
