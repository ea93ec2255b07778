/**
 * Where an environment goes from its phase. The moves are told in lib/model/environment.ts; this says when.
 *
 * Goal: run.      requested ──► provisioning ──(signed in)──► ready ──(outage)──► updating ──(signed in)──► ready
 *                 provisioning, updating, suspended ──(deadline, failed starts, stalled)──► failed_recoverable
 *                 failed_recoverable ──(retry)──► provisioning where it was never ready, else updating
 *                 suspended ──(signed in)──► ready
 * Goal: suspend.  ready, updating, failed_recoverable ──(no process left)──► suspended
 *                 requested and provisioning become ready first: there is nothing worth keeping before that
 */
import type { Phase } from '../../lib/model/environment.ts'

export interface Situation {
  readonly phase: Phase
  readonly everReady: boolean
  readonly wantedSuspended: boolean
  /** All checks of the goal are satisfied. */
  readonly satisfied: boolean
  /** Clients cannot use it. */
  readonly outage: boolean
  /** The attempt under way has used up its time or its starts. */
  readonly exhausted: boolean
  /** A failed environment's rest is over. */
  readonly retryDue: boolean
}

/** Whether the goal is to stop Postgres; an environment that was never ready is brought up first. */
export const stopsNow = (phase: Phase, wantedSuspended: boolean): boolean =>
  wantedSuspended && phase !== 'requested' && phase !== 'provisioning'

/** The phase that follows, by a legal move. Deletion is decided elsewhere. */
export const nextPhase = (situation: Situation): Phase => {
  const { phase, everReady, satisfied, outage, exhausted, retryDue } = situation
  if (stopsNow(phase, situation.wantedSuspended)) return satisfied ? 'suspended' : phase
  switch (phase) {
    case 'requested':
      return 'provisioning'
    case 'provisioning':
    case 'updating':
    case 'suspended':
      if (satisfied) return 'ready'
      return exhausted ? 'failed_recoverable' : phase
    case 'ready':
      return outage ? 'updating' : 'ready'
    case 'failed_recoverable':
      if (!retryDue) return phase
      return everReady ? 'updating' : 'provisioning'
    case 'deleting':
    case 'deleted':
      return phase
  }
}
