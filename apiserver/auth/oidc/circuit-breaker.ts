/** Leaves a failing service alone for a while: then one call tries it, and the others go on being refused until it did well. */

/** When it opens, and for how long. Milliseconds. */
export interface BreakerSettings {
  readonly failures: number
  readonly withinMs: number
  readonly openMs: number
}

/** `now` is a monotonic clock in milliseconds. */
export class CircuitBreaker {
  readonly #settings: BreakerSettings
  readonly #now: () => number
  #failedAt: number[] = []
  #openUntil: number | undefined
  #probing = false

  constructor(settings: BreakerSettings, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#now = now
  }

  /** Whether a call may be made. One that may has to end in `succeeded` or `failed`. */
  admits(): boolean {
    if (this.#openUntil === undefined) return true
    if (this.#now() < this.#openUntil || this.#probing) return false
    this.#probing = true
    return true
  }

  /** Whole seconds until the next try, at least 1. */
  get retrySeconds(): number {
    return Math.max(1, Math.ceil(((this.#openUntil ?? 0) - this.#now()) / 1000))
  }

  succeeded(): void {
    this.#failedAt = []
    this.#openUntil = undefined
    this.#probing = false
  }

  failed(): void {
    const now = this.#now()
    const { failures, withinMs, openMs } = this.#settings
    this.#failedAt = [...this.#failedAt.filter(at => now - at < withinMs), now]
    if (this.#probing || this.#failedAt.length >= failures) this.#openUntil = now + openMs
    this.#probing = false
  }
}
