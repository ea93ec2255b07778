/** Time as the control loops see it: injected, so that tests decide when it passes. */
export interface Clock {
  /** Monotonic milliseconds; only differences mean something. */
  now(): number
  /** Calls back once after at least `ms`; returns how to call it off. */
  after(ms: number, callback: () => void): () => void
}

/** setTimeout fires at once for anything longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The machine's monotonic clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(0, ms), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
export const sleep = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) {
      resolve()
      return
    }
    const wake = (): void => {
      cancel()
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(ms, wake)
    signal.addEventListener('abort', wake)
  })
