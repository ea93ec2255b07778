/** A pause before the next try that doubles with every setback, spread a little so that many do not try together. */
export class Retry {
  readonly #first: number
  readonly #longest: number
  #setbacks = 0
  #timer: NodeJS.Timeout | undefined

  constructor(firstMs: number, longestMs: number) {
    this.#first = firstMs
    this.#longest = longestMs
  }

  /** Notes a setback and tries again after the pause; an earlier appointment is dropped. */
  later(work: () => void): void {
    const pause = Math.min(this.#first * 2 ** this.#setbacks++, this.#longest)
    this.cancel()
    this.#timer = setTimeout(work, pause * (0.8 + Math.random() * 0.4))
    this.#timer.unref()
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }

  /** All is well: the next pause is the first one again. */
  forget(): void {
    this.#setbacks = 0
  }
}
