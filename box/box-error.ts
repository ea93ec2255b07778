/** Something that stops the single box and that its user can put right: shown as one line, without a stack. */
export class BoxError extends Error {
  /** The process' exit code. */
  readonly exitCode: number

  constructor(message: string, options: { readonly cause?: unknown; readonly exitCode?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'BoxError'
    this.exitCode = options.exitCode ?? 1
  }
}
