/** Keys that a worker may take now: by priority, within one in order of arrival. Every step takes constant time on average. */

/** A key and its priority. */
export interface ReadyKey {
  readonly key: string
  readonly priority: number
}

interface Level {
  /** In order of arrival from `head` on; entries that are no longer current are skipped. */
  entries: ReadyKey[]
  head: number
  live: number
}

export class ReadyKeys {
  readonly #current = new Map<string, ReadyKey>()
  readonly #levels = new Map<number, Level>()

  get size(): number {
    return this.#current.size
  }

  has(key: string): boolean {
    return this.#current.has(key)
  }

  /** Adds a key at the end of its level; takes it out of another. */
  add(key: string, priority: number): void {
    const former = this.#current.get(key)
    if (former !== undefined) this.#level(former.priority).live -= 1
    const entry = { key, priority }
    this.#current.set(key, entry)
    const level = this.#level(priority)
    level.entries.push(entry)
    level.live += 1
  }

  /** Takes out the first key of the highest level. */
  take(): ReadyKey | undefined {
    let best: number | undefined
    for (const [priority, { live }] of this.#levels)
      if (live > 0 && (best === undefined || priority > best)) best = priority
    if (best === undefined) return undefined
    const level = this.#level(best)
    for (;;) {
      const entry = level.entries[level.head++]
      if (level.head * 2 > level.entries.length) {
        level.entries = level.entries.slice(level.head)
        level.head = 0
      }
      if (entry === undefined) return undefined
      if (this.#current.get(entry.key) !== entry) continue
      this.#current.delete(entry.key)
      level.live -= 1
      return entry
    }
  }

  /** How many keys there are, by priority. */
  depths(): ReadonlyMap<number, number> {
    return new Map([...this.#levels].map(([priority, { live }]) => [priority, live]))
  }

  clear(): void {
    this.#current.clear()
    this.#levels.clear()
  }

  #level(priority: number): Level {
    let level = this.#levels.get(priority)
    if (level === undefined) {
      level = { entries: [], head: 0, live: 0 }
      this.#levels.set(priority, level)
    }
    return level
  }
}
