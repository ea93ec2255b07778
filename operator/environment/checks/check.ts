import type { Action } from '../action.ts'
import type { Observed } from '../observed.ts'

/** What a check found wanting. `reason` and `message` are what people read: no secrets, no times, the same on every retry. */
export interface Violated {
  readonly reason: string
  readonly message: string
  /** The condition that this makes False. Absent: nothing is wrong, it is only not done yet. */
  readonly about?: 'StorageReady' | 'CredentialsReady' | 'DatabaseReachable'
  /** What would repair it. Absent: wait and look again. */
  readonly repair?: Action
  /** Clients cannot use the database: a ready environment becomes `updating`. */
  readonly outage: boolean
  /** No attempt makes sense before somebody changes something. */
  readonly stalled?: true
}

/** A small pure judgement: undefined when satisfied. */
export type Check = (observed: Observed) => Violated | undefined

/** What is known before anything but the resource was read. */
export type Identity = Pick<Observed, 'environment' | 'wanted' | 'namespace'>

/** A check that needs the resource alone. */
export type GateCheck = (identity: Identity) => Violated | undefined

/** What the first check that is not satisfied says; undefined when all are. */
export const firstViolated = <Seen>(
  checks: readonly ((seen: Seen) => Violated | undefined)[],
  seen: Seen,
): Violated | undefined => {
  for (const check of checks) {
    const violated = check(seen)
    if (violated !== undefined) return violated
  }
  return undefined
}
