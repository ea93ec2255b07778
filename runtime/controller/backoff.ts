/** How waits grow: doubling from `baseMs`, never over `capMs`. */
export interface BackoffPolicy {
  readonly baseMs: number
  readonly capMs: number
}

/** Retries of a key. */
export const RETRY_BACKOFF: BackoffPolicy = { baseMs: 5, capMs: 60_000 }

/** Reconnects of a reflector to a store that thousands share. */
export const RECONNECT_BACKOFF: BackoffPolicy = { baseMs: 800, capMs: 30_000 }

/** Reconnects of a reflector to a store that a few processes share: whatever keeps it away, it is back within seconds. */
export const QUICK_RECONNECT_BACKOFF: BackoffPolicy = { baseMs: 100, capMs: 2_000 }

/** The longest wait before attempt `failures` + 1; `failures` counts from 0. */
export const backoffCeilingMs = (policy: BackoffPolicy, failures: number): number =>
  Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(failures, 64))

/** A wait with full jitter: anywhere between nothing and the ceiling, so that many who failed together do not return together. */
export const backoffMs = (policy: BackoffPolicy, failures: number, random: () => number): number =>
  random() * backoffCeilingMs(policy, failures)

/**
 * A wait with equal jitter: between half of the ceiling and all of it. Where what is retried costs somebody else something each
 * time: full jitter repeats now and then at once, and a few times in a row.
 */
export const steadyBackoffMs = (policy: BackoffPolicy, failures: number, random: () => number): number =>
  backoffCeilingMs(policy, failures) * (0.5 + random() / 2)
