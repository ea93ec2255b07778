/** Random choices that a seed repeats. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ x < 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer from 0 up to, not including, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  /** An integer; both ends included. */
  integer(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  pick<T>(choices: readonly T[]): T {
    const chosen = choices[Math.floor(this.next() * choices.length)]
    if (chosen === undefined) throw new Error('There is nothing to choose from')
    return chosen
  }

  /** Picks a name by its weight. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries<number>(weights) as [Name, number][]
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return this.pick(entries)[0]
  }

  /** Another source, so that what one part draws does not depend on how far another one got. */
  fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.next() * 2 ** 32))
  }
}
