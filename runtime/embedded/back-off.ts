/** Delays that double from `first` to `most` milliseconds, each with jitter of up to half of itself. */
export class BackOff {
  readonly #first: number
  readonly #most: number
  #failures = 0

  constructor(first: number, most: number) {
    this.#first = first
    this.#most = most
  }

  next(): number {
    const delay = Math.min(this.#most, this.#first * 2 ** Math.min(this.#failures++, 30))
    return delay * (0.5 + Math.random() / 2)
  }

  reset(): void {
    this.#failures = 0
  }
}
