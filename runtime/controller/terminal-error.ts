/** Thrown by a reconcile that would fail the same way again: it is not retried until something changes. */
export class TerminalError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'TerminalError'
  }
}
