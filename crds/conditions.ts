import { z } from 'zod'

/** Condition types. Ready, Reconciling and Stalled follow kstatus: the last two are present only while true. */
export const CONDITION_TYPES = [
  'Ready',
  'Reconciling',
  'Stalled',
  'StorageReady',
  'CredentialsReady',
  'DatabaseReachable',
  'Suspended',
  'Expiring',
  'Expired',
  'UncleanStop',
] as const
/** Why `Expired` is True when the sweep deletes: what the cause of that deletion is read from. */
export const TIME_TO_LIVE_ENDED = 'TimeToLiveEnded'

export type ConditionType = (typeof CONDITION_TYPES)[number]

/** A condition as it stands in a status. `reason` is for machines, `message` for people: no secrets, no times. */
export const condition = z.object({
  type: z.enum(CONDITION_TYPES).describe('What this is about'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds'),
  reason: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Z][A-Za-z0-9]*$/)
    .describe('Why, in one word'),
  message: z.string().max(1024).describe('Why, in a sentence'),
  observedGeneration: z.int().min(0).describe('The generation this was judged for'),
  lastTransitionTime: z.string().max(40).describe('When the status last changed, RFC 3339'),
})
export type Condition = z.infer<typeof condition>

/** The conditions of a status: one of each type at most. Kubernetes merges and checks it as a map by type. */
export const conditionList = z
  .array(condition)
  .max(16)
  .refine(
    conditions => new Set(conditions.map(({ type }) => type)).size === conditions.length,
    'must hold each type once',
  )
  .meta({
    description: 'Details, by type',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  })

/** The condition of a type, if it is there. */
export const conditionOf = (conditions: readonly Condition[] | undefined, type: ConditionType): Condition | undefined =>
  conditions?.find(candidate => candidate.type === type)
