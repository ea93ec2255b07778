/** So many at once and no more; nobody waits for a place. */
export class Places {
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** @returns how to leave, once; undefined: every place is taken */
  enter(): (() => void) | undefined {
    if (this.#free === 0) return undefined
    this.#free -= 1
    return () => {
      this.#free += 1
    }
  }
}
