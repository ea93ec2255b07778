/** How many events may be told of one object: a burst, then one now and then. What is known is dropped, oldest first. */
const BURST = 25
const REFILL_MS = 5 * 60_000
const MAX_OBJECTS = 4_096

interface Bucket {
  tokens: number
  at: number
}

export class EventLimits {
  readonly #now: () => number
  readonly #buckets = new Map<string, Bucket>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether one more may be told. */
  take(uid: string): boolean {
    const now = this.#now()
    const before = this.#buckets.get(uid) ?? { tokens: BURST, at: now }
    const refilled = Math.max(0, Math.floor((now - before.at) / REFILL_MS))
    const tokens = Math.min(BURST, before.tokens + refilled)
    // A clock that was set back starts anew, rather than to refill nothing for that long.
    const at = now < before.at || tokens === BURST ? now : before.at + refilled * REFILL_MS
    this.#buckets.delete(uid)
    this.#buckets.set(uid, { tokens: Math.max(0, tokens - 1), at })
    if (this.#buckets.size > MAX_OBJECTS) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
    return tokens > 0
  }
}
