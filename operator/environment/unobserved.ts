import type { Environment, EnvironmentStatus } from '../../crds/environment.ts'
import type { ConditionError } from '../host/host.ts'
import { claimsOf, conditionsOf, fails, holds } from './conditions.ts'

/**
 * The status of an environment whose host cannot say how it is, for a reason that people can do something about. What was known
 * stays, the generation that it was judged for too; it is only said that it is looked at again, and why in vain.
 */
export const unobserved = (
  { metadata, status }: Environment,
  { reason, message }: Pick<ConditionError, 'reason' | 'message'>,
  nowMs: number,
): EnvironmentStatus => {
  const { Stalled: _, ...before } = claimsOf(status?.conditions)
  const now = new Date(nowMs).toISOString()
  const claims = { ...before, Ready: before.Ready ?? fails(reason, message), Reconciling: holds(reason, message) }
  return {
    ...status,
    phase: status?.phase ?? 'requested',
    phaseTransitionTime: status?.phaseTransitionTime ?? now,
    conditions: conditionsOf(claims, status?.conditions, metadata.generation, now),
  }
}
