import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { identityMatches } from './checks/identity-matches.ts'
import { type Claims, claimsOf, conditionsOf, fails, holds } from './conditions.ts'
import type { Decision } from './decision.ts'
import type { Observed } from './observed.ts'
import { operationOf } from './operation.ts'
import { troubleRestMs } from './recollection.ts'

const MESSAGE = 'The environment is being deleted'
/** How often to ask whether a process is gone, at first; ever more seldom, since the host wakes us too. */
const POLL_MS = 500
const POLL_CAP_MS = 10_000
const pollMs = (sinceMs: number): number => Math.min(Math.max(sinceMs / 10, POLL_MS), POLL_CAP_MS)

/**
 * A deletion that was asked for. Nothing is created, started or asked of Postgres, whatever state it is in: the data is
 * dealt with, then the resource is let go. A failure is reported and tried again; it never gives up.
 */
export const decideDeletion = (observed: Observed, nowMs: number): Decision => {
  const { environment, wanted, recollection } = observed
  const { metadata, spec, status } = environment
  const before = status ?? {}
  if (!metadata.finalizers.includes(ENVIRONMENT_FINALIZER))
    return { status: before, action: undefined, requeueAfterMs: undefined }
  const neverTouched = status?.phase === undefined || status.phase === 'requested'
  if (neverTouched && identityMatches(observed) !== undefined)
    return { status: before, action: { kind: 'release' }, requeueAfterMs: undefined }

  const trouble = recollection.trouble?.action === 'tear-down' ? recollection.trouble : undefined
  const now = new Date(nowMs).toISOString()
  const { Expired } = claimsOf(before.conditions)
  const claims: Claims = {
    Ready: fails(trouble?.reason ?? 'Deleting', trouble?.message ?? MESSAGE),
    Reconciling: holds(trouble?.reason ?? 'Deleting', trouble?.message ?? MESSAGE),
    DatabaseReachable: fails('Deleting', MESSAGE),
    ...(trouble === undefined ? {} : { [trouble.condition]: fails(trouble.reason, trouble.message) }),
    // The cause of this deletion is read from it.
    ...(Expired === undefined ? {} : { Expired }),
  }
  const operation = operationOf(spec.request, before.operation, {
    phase: 'deleting',
    wantedSuspended: wanted.suspended,
    satisfied: false,
    stalled: undefined,
    trouble: trouble?.message,
    retrying: false,
  })
  const waitMs = trouble === undefined ? 0 : troubleRestMs(trouble, nowMs)
  const since = before.phase === 'deleting' ? (before.phaseTransitionTime ?? now) : now
  return {
    status: {
      ...before,
      phase: 'deleting',
      phaseTransitionTime: since,
      observedGeneration: metadata.generation,
      conditions: conditionsOf(claims, before.conditions, metadata.generation, now),
      ...(operation === undefined ? {} : { operation }),
    },
    action: waitMs > 0 ? undefined : { kind: 'tear-down', policy: wanted.deletionPolicy },
    requeueAfterMs: waitMs > 0 ? waitMs : pollMs(nowMs - Date.parse(since)),
  }
}
