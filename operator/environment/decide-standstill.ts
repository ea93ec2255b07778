import { firstViolated } from './checks/check.ts'
import { GATES } from './checks/ladders.ts'
import { claimsOf, conditionsOf, fails, holds } from './conditions.ts'
import type { Decision } from './decision.ts'
import { seenSpec } from './expiry.ts'
import type { Observed } from './observed.ts'
import { operationOf } from './operation.ts'
import { compact } from './status-draft.ts'

/**
 * An environment that is not ours to touch. A pause says nothing about the database: Ready stays what it was and an
 * operation waits. A false identity is an end: its request fails, since no attempt follows without a change.
 */
export const decideStandstill = (observed: Observed, nowMs: number): Decision => {
  const { environment, wanted, recollection } = observed
  const { status, metadata, spec } = environment
  const { reason, message } = firstViolated(GATES, observed) ?? { reason: 'Paused', message: '' }
  const paused = reason === 'Paused'
  const phase = status?.phase ?? 'requested'
  const { Reconciling: _, ...before } = claimsOf(status?.conditions)
  const claims = {
    ...before,
    Ready: paused && before.Ready !== undefined ? before.Ready : fails(reason, message),
    Stalled: holds(reason, message),
  }
  const operation = paused
    ? status?.operation
    : operationOf(spec.request, status?.operation, {
        phase,
        wantedSuspended: wanted.suspended,
        satisfied: false,
        stalled: message,
        trouble: message,
        retrying: false,
      })
  const now = new Date(nowMs).toISOString()
  return {
    status: compact({
      ...status,
      phase,
      phaseTransitionTime: status?.phaseTransitionTime ?? now,
      ...seenSpec(environment),
      conditions: conditionsOf(claims, status?.conditions, metadata.generation, now),
      ...(operation === undefined ? {} : { operation }),
    }),
    action: undefined,
    // Labels of a namespace may change without a word.
    requeueAfterMs: paused ? undefined : recollection.resyncMs,
  }
}
