/** The times and counts that decisions depend on. */
export interface Limits {
  /** How long an attempt to bring Postgres up may take before the environment is called failed. */
  readonly attemptDeadlineMs: number
  /** How many starts may fail in one attempt. */
  readonly maxFailedStarts: number
  /** How often a running environment's sign-in is proven again. */
  readonly proofEveryMs: number
  /**
   * Whether an operator that starts proves a sign-in to every ready environment at once. Where servers outlive the
   * operator and are watched, its start says nothing about them: then the first proofs are spread over `proofEveryMs`.
   */
  readonly proofAtStart: boolean
  /** How long after its expiry a preview is swept: a renewal acknowledged in the last second is seen before that. */
  readonly expiryGraceMs: number
}

const RETRY_BASE_MS = 5_000
const RETRY_CAP_MS = 300_000

/** How long a failed environment rests before its next attempt: 5 s, doubled with each attempt, at most 5 minutes. */
export const retryAfterMs = (attempts: number): number =>
  Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 2 ** Math.min(20, Math.max(0, attempts - 1)))

const POLL_MIN_MS = 250
const POLL_MAX_MS = 5_000

/** When to look again at something that takes its time: soon at first, the host wakes us anyway. */
export const pollMs = (elapsedMs: number): number => Math.min(POLL_MAX_MS, Math.max(POLL_MIN_MS, elapsedMs / 10))

/** A step back of the clock that may be an ordinary correction. */
const CLOCK_STEP_MS = 60_000

/** How long ago something was. A time that lies well ahead is from before the clock was set back: long ago. */
export const elapsedMs = (since: string, nowMs: number): number => {
  const elapsed = nowMs - Date.parse(since)
  return elapsed < -CLOCK_STEP_MS ? Infinity : Math.max(0, elapsed)
}
