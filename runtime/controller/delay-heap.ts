/** Keys that become due later, at most one entry each. A binary heap; entries that were replaced are skipped when they surface. */
export interface DelayedKey {
  readonly key: string
  readonly dueAt: number
  readonly priority: number
}

/** Keys that are due at the same time go in order of arrival. */
interface Entry extends DelayedKey {
  readonly arrival: number
}

const byTime = (a: Entry, b: Entry): number => (a.dueAt === b.dueAt ? a.arrival - b.arrival : a.dueAt - b.dueAt)

export class DelayHeap {
  #heap: Entry[] = []
  readonly #current = new Map<string, Entry>()
  #arrivals = 0

  /** Keys that wait. */
  get size(): number {
    return this.#current.size
  }

  /** Adds a key; one that waits already keeps the earlier time and the higher priority. */
  add(key: string, dueAt: number, priority: number): void {
    const waiting = this.#current.get(key)
    if (waiting !== undefined && waiting.dueAt <= dueAt && waiting.priority >= priority) return
    const entry = {
      key,
      dueAt: Math.min(dueAt, waiting?.dueAt ?? Number.POSITIVE_INFINITY),
      priority: Math.max(priority, waiting?.priority ?? Number.NEGATIVE_INFINITY),
      arrival: this.#arrivals++,
    }
    this.#current.set(key, entry)
    this.#push(entry)
    // Replaced entries must not pile up under keys that are moved forward again and again. What is sorted is a heap.
    if (this.#heap.length > 2 * this.#current.size + 64) this.#heap = [...this.#current.values()].sort(byTime)
  }

  /** When the next key is due. */
  nextDueAt(): number | undefined {
    this.#dropReplaced()
    return this.#heap[0]?.dueAt
  }

  /** Takes every key that is due, earliest first. */
  takeDue(now: number): readonly DelayedKey[] {
    const due: DelayedKey[] = []
    for (;;) {
      this.#dropReplaced()
      const first = this.#heap[0]
      if (first === undefined || first.dueAt > now) return due
      this.#pop()
      this.#current.delete(first.key)
      due.push(first)
    }
  }

  /** Entries held, the replaced ones included. */
  get held(): number {
    return this.#heap.length
  }

  clear(): void {
    this.#heap = []
    this.#current.clear()
  }

  #dropReplaced(): void {
    for (
      let first = this.#heap[0];
      first !== undefined && this.#current.get(first.key) !== first;
      first = this.#heap[0]
    )
      this.#pop()
  }

  #at(index: number): Entry {
    const entry = this.#heap[index]
    if (entry === undefined) throw new RangeError(`Cannot read heap entry ${index} of ${this.#heap.length}`)
    return entry
  }

  #isBefore(a: number, b: number): boolean {
    return byTime(this.#at(a), this.#at(b)) < 0
  }

  #swap(a: number, b: number): void {
    const held = this.#at(a)
    this.#heap[a] = this.#at(b)
    this.#heap[b] = held
  }

  #push(entry: Entry): void {
    let index = this.#heap.push(entry) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (this.#isBefore(parent, index)) return
      this.#swap(parent, index)
      index = parent
    }
  }

  #pop(): void {
    const last = this.#heap.pop()
    if (last === undefined || this.#heap.length === 0) return
    this.#heap[0] = last
    for (let index = 0; ; ) {
      let smallest = index
      for (const child of [2 * index + 1, 2 * index + 2])
        if (child < this.#heap.length && this.#isBefore(child, smallest)) smallest = child
      if (smallest === index) return
      this.#swap(smallest, index)
      index = smallest
    }
  }
}
