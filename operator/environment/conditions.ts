/** Builds condition lists. What a list does not say is not there: Reconciling, Stalled and the like exist only while true. */
import { CONDITION_TYPES, type Condition, type ConditionType, conditionOf } from '../../crds/conditions.ts'

/** What a condition should say; when it last changed is worked out from the list before. */
export interface Claim {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

export type Claims = Partial<Readonly<Record<ConditionType, Claim>>>

export const holds = (reason: string, message: string): Claim => ({ status: 'True', reason, message })
export const fails = (reason: string, message: string): Claim => ({ status: 'False', reason, message })
export const unknown = (reason: string, message: string): Claim => ({ status: 'Unknown', reason, message })

const MAX_MESSAGE = 1024
/** What a host says may not be a reason word; the schema holds, whatever it says. */
const reasonWord = (reason: string): string => (/^[A-Z][A-Za-z0-9]{0,63}$/.test(reason) ? reason : 'Failed')

/** The claims as conditions, in the order of their types. */
export const conditionsOf = (
  claims: Claims,
  before: readonly Condition[] | undefined,
  generation: number,
  nowIso: string,
): Condition[] =>
  CONDITION_TYPES.flatMap(type => {
    const claim = claims[type]
    if (claim === undefined) return []
    const old = conditionOf(before, type)
    return [
      {
        type,
        status: claim.status,
        reason: reasonWord(claim.reason),
        message: claim.message.slice(0, MAX_MESSAGE),
        observedGeneration: generation,
        lastTransitionTime: old?.status === claim.status ? old.lastTransitionTime : nowIso,
      },
    ]
  })

/** What a list says now, to be said again. */
export const claimsOf = (conditions: readonly Condition[] | undefined): Claims =>
  Object.fromEntries((conditions ?? []).map(({ type, status, reason, message }) => [type, { status, reason, message }]))
