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

/** Who refused a write that the caller may make and that is sound in itself: a webhook, a policy, a quota. */
export interface Refusal {
  /** How and by whom, the same on every try: `denied by webhook "x"`. */
  readonly by: string
  /** Their own words, where they gave some. */
  readonly words?: string
  /** What was to be written. */
  readonly object?: { readonly kind: string; readonly name: string }
}

/** The one error a ResourceStore throws. `Unavailable` and `TooManyRequests` may be retried as they are. */
export class StoreError extends Error {
  readonly reason: StoreErrorReason
  readonly violations: readonly Violation[]
  readonly refusal: Refusal | undefined

  constructor(
    reason: StoreErrorReason,
    message: string,
    options: {
      readonly violations?: readonly Violation[]
      readonly refusal?: Refusal | undefined
      readonly cause?: unknown
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'StoreError'
    this.reason = reason
    this.violations = options.violations ?? []
    this.refusal = options.refusal
  }
}

/** Whether an error is a StoreError of one of these reasons. */
export const isStoreError = (error: unknown, ...reasons: StoreErrorReason[]): error is StoreError =>
  error instanceof StoreError && (reasons.length === 0 || reasons.includes(error.reason))
