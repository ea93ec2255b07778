/**
 * What to do next about an environment, and what its status should say: a pure function of what was observed and the
 * time. It never reads or writes anything.
 *
 * What comes first is asked in this order, and what comes later is not even looked at: a deletion that was asked for;
 * whether the environment is ours to touch; the finalizer; expiry; what keeps its data; its life.
 */
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { firstViolated, type Identity } from './checks/check.ts'
import { GATES } from './checks/ladders.ts'
import { decideDeletion } from './decide-deletion.ts'
import { decideExpiry } from './decide-expiry.ts'
import { decideLife } from './decide-life.ts'
import { decideRetention } from './decide-retention.ts'
import { decideStandstill } from './decide-standstill.ts'
import type { Decision } from './decision.ts'
import { expiryOf } from './expiry.ts'
import type { Limits } from './limits.ts'
import type { Observed } from './observed.ts'

/** What decides about an environment just now. */
export type Concern = 'deletion' | 'standstill' | 'adoption' | 'expiry' | 'life'

/** Of everything that was observed, only the resource and its namespace count here: so it also says what else to observe. */
export const concernOf = (identity: Identity, nowMs: number, limits: Limits): Concern => {
  const { metadata } = identity.environment
  if (metadata.deletionTimestamp !== undefined) return 'deletion'
  if (firstViolated(GATES, identity) !== undefined) return 'standstill'
  if (!metadata.finalizers.includes(ENVIRONMENT_FINALIZER)) return 'adoption'
  // A protected preview cannot be swept: it lives on, and its condition says that it should not.
  if (expiryOf(identity, nowMs, limits).due) return 'expiry'
  return 'life'
}

export const decide = (observed: Observed, nowMs: number, limits: Limits): Decision => {
  switch (concernOf(observed, nowMs, limits)) {
    case 'deletion':
      return decideDeletion(observed, nowMs)
    case 'standstill':
      return decideStandstill(observed, nowMs)
    case 'adoption':
      return {
        status: observed.environment.status ?? {},
        action: { kind: 'add-finalizer' },
        requeueAfterMs: undefined,
      }
    case 'expiry':
      return decideExpiry(observed, nowMs)
    case 'life':
      return decideRetention(observed) ?? decideLife(observed, nowMs, limits)
  }
}
