/**
 * How many servers may be starting at once: after a machine restart all of them want to, and each takes a core for a moment.
 * First come, first served.
 */
export class StartSlots {
  readonly #size: number
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(size: number) {
    this.#size = size
    this.#free = size
  }

  /** Nobody starts. */
  get idle(): boolean {
    return this.#free === this.#size
  }

  /** Waits for a slot and answers how to give it back; giving it back twice does nothing. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
