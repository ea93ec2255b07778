/** Token buckets in memory: one a key, filled evenly up to a burst. Per replica; a full bucket is forgotten. */

/** A limit by name; `perMinute` 0 switches it off. */
export interface RatePolicy {
  readonly name: string
  readonly perMinute: number
  readonly burst: number
}

interface Bucket {
  tokens: number
  /** When `tokens` was right, milliseconds. */
  at: number
}

/** What a request found: whether it may pass, how many more may now, and seconds until the bucket is full again. */
export interface Taken {
  readonly allowed: boolean
  readonly remaining: number
  readonly resetSeconds: number
  /** Seconds until one more may pass; 0 when it may now. */
  readonly retrySeconds: number
}

const MAX_KEYS = 100_000

/** All buckets of one policy. `now` is a monotonic clock in milliseconds. */
export class RateLimiter {
  readonly policy: RatePolicy
  /** The policy as the RateLimit-Policy header says it. */
  readonly policyHeader: string
  readonly #buckets = new Map<string, Bucket>()
  readonly #perMillisecond: number
  readonly #burst: number
  readonly #now: () => number
  #sweptAt: number

  constructor(policy: RatePolicy, now: () => number = () => performance.now()) {
    this.policy = policy
    this.policyHeader = `"${policy.name}";q=${policy.perMinute};w=60`
    this.#perMillisecond = policy.perMinute / 60_000
    this.#burst = Math.max(1, Math.min(policy.burst, policy.perMinute))
    this.#now = now
    this.#sweptAt = now()
  }

  get enabled(): boolean {
    return this.policy.perMinute > 0
  }

  /** Whether a key was counted lately. */
  knows(key: string): boolean {
    return this.#buckets.has(key)
  }

  /** Takes one, or refuses and takes nothing. */
  take(key: string): Taken {
    const now = this.#now()
    if (now - this.#sweptAt > 60_000) this.#sweep(now)
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) {
      if (this.#buckets.size >= MAX_KEYS) this.#forgetOldest()
      bucket = { tokens: this.#burst, at: now }
      this.#buckets.set(key, bucket)
    } else this.#fill(bucket, now)
    const allowed = bucket.tokens >= 1
    if (allowed) bucket.tokens -= 1
    return this.#state(bucket, allowed)
  }

  /** Gives back what was taken: it was none of what is limited. */
  giveBack(key: string): void {
    const bucket = this.#buckets.get(key)
    if (bucket !== undefined) bucket.tokens = Math.min(this.#burst, bucket.tokens + 1)
  }

  #fill(bucket: Bucket, now: number): void {
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * this.#perMillisecond)
    bucket.at = now
  }

  #state(bucket: Bucket, allowed: boolean): Taken {
    return {
      allowed,
      remaining: Math.floor(bucket.tokens),
      resetSeconds: Math.ceil((this.#burst - bucket.tokens) / this.#perMillisecond / 1000),
      retrySeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / this.#perMillisecond / 1000)),
    }
  }

  #sweep(now: number): void {
    this.#sweptAt = now
    for (const [key, bucket] of this.#buckets) {
      this.#fill(bucket, now)
      if (bucket.tokens >= this.#burst) this.#buckets.delete(key)
    }
  }

  #forgetOldest(): void {
    const oldest = this.#buckets.keys().next()
    if (oldest.done !== true) this.#buckets.delete(oldest.value)
  }
}
