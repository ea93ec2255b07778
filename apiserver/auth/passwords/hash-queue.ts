/**
 * Who is served next, and who is not at all: those whose address and account failed least come first, so that a flood of
 * guesses does not turn away whoever signs in rightly, as a queue by arrival would.
 */

/** A job that waits. */
export interface Waiting {
  /** Failures of its address and account lately and one more; 0: the account signed in from there before, which no stranger has. */
  readonly rank: number
  /** Counts arrivals. */
  readonly arrival: number
}

const goesBefore = (a: Waiting, b: Waiting): boolean => a.rank < b.rank || (a.rank === b.rank && a.arrival < b.arrival)

/** The one to be served next; undefined: nobody waits. */
export const nextOf = <Job extends Waiting>(waiting: readonly Job[]): Job | undefined => {
  let [best] = waiting
  for (const job of waiting) if (best === undefined || goesBefore(job, best)) best = job
  return best
}

/** The one that has to go when another comes and there is no room: whoever would be served last, the newcomer among them. */
export const lastOf = <Job extends Waiting>(waiting: readonly Job[]): Job | undefined => {
  let [worst] = waiting
  for (const job of waiting) if (worst === undefined || goesBefore(worst, job)) worst = job
  return worst
}
