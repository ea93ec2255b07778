import type { ErrorCode } from './codes.ts'

/** One thing that is wrong with a request. `pointer` is a JSON pointer fragment into a body, or the parameter's name. */
export interface FieldError {
  readonly in: 'body' | 'query' | 'path' | 'header'
  readonly pointer: string
  readonly code: string
  readonly message: string
}

/** Extras of an error: safe to show to the caller, and the cause, which is not. */
export interface DomainErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>
  readonly errors?: readonly FieldError[]
  readonly retryAfterSeconds?: number
  /** The request whose stored refusal this repeats: the answer names that one, so that both are equal. */
  readonly replayOf?: string
  readonly cause?: unknown
}

/** An error with a stable code and a message for the caller: the action, the current value, what was expected. Never a secret. */
export class DomainError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly errors: readonly FieldError[]
  readonly retryAfterSeconds: number | undefined
  readonly replayOf: string | undefined

  constructor(code: ErrorCode, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'DomainError'
    this.code = code
    this.details = options.details ?? {}
    this.errors = options.errors ?? []
    this.retryAfterSeconds = options.retryAfterSeconds
    this.replayOf = options.replayOf
  }
}
