import { TIME_TO_LIVE_ENDED } from '../../crds/conditions.ts'
import { claimsOf, conditionsOf, holds } from './conditions.ts'
import type { Decision } from './decision.ts'
import { expiresAtText } from './expiry.ts'
import type { Observed } from './observed.ts'

const EXPIRED = holds(TIME_TO_LIVE_ENDED, 'The time to live of this preview has ended')

/**
 * An expired preview: the condition first, so that whoever finds the deletion knows its cause, then the deletion, which
 * the store grants only if nobody changed the resource since. A renewal in between wins.
 */
export const decideExpiry = ({ environment, wanted }: Observed, nowMs: number): Decision => {
  const { status, metadata } = environment
  const { Expiring: _, ...before } = claimsOf(status?.conditions)
  const claims = { ...before, Expired: EXPIRED }
  const expiresAt = expiresAtText(wanted)
  return {
    status: {
      ...status,
      conditions: conditionsOf(claims, status?.conditions, metadata.generation, new Date(nowMs).toISOString()),
      observedGeneration: metadata.generation,
      ...(expiresAt === undefined ? {} : { expiresAt }),
    },
    action: { kind: 'expire' },
    requeueAfterMs: undefined,
  }
}
