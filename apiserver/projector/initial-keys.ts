import type { Log } from '../../runtime/log/log.ts'

/** Attempts after which a key no longer holds up the start: something is wrong with it alone. */
const MAX_FAILURES = 10

/** Counts down what must be folded before the projector is ready. Keys that fail are waited for, but not for ever. */
export class InitialKeys {
  readonly #log: Log
  readonly #open = new Map<string, number>()
  readonly #done = Promise.withResolvers<undefined>()
  #waited = false

  constructor(log: Log) {
    this.#log = log
  }

  expect(keys: readonly string[]): void {
    for (const key of keys) this.#open.set(key, 0)
  }

  folded(key: string): void {
    if (this.#open.delete(key)) this.#settle()
  }

  failed(key: string, error: unknown): void {
    const failures = this.#open.get(key)
    if (failures === undefined) return
    if (failures + 1 < MAX_FAILURES) {
      this.#open.set(key, failures + 1)
      return
    }
    this.#log.error({ err: error, key }, 'Cannot fold what stood there at the start; going on without it')
    this.folded(key)
  }

  /** Resolves once nothing is expected any more, or the signal aborts. */
  async done(signal: AbortSignal): Promise<void> {
    this.#waited = true
    this.#settle()
    const abort = (): void => this.#done.resolve(undefined)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    await this.#done.promise
    signal.removeEventListener('abort', abort)
  }

  #settle(): void {
    if (this.#waited && this.#open.size === 0) this.#done.resolve(undefined)
  }
}
