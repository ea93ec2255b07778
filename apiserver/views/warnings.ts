/** What an environment's owner should know although it may well be ready: read from its conditions. */
import { type Condition, conditionOf } from '../../crds/conditions.ts'
import type { EnvironmentRow } from '../store/environments.ts'

type Warned = Pick<EnvironmentRow, 'phase' | 'status' | 'expiresAt' | 'deletionProtection'>

/** Warnings, the most pressing first. */
export const warningsOf = (row: Warned): { readonly reason: string; readonly message: string }[] => {
  if (row.phase === 'deleting' || row.phase === 'deleted') return []
  const conditions = row.status?.conditions
  const storage = conditionOf(conditions, 'StorageReady')
  return [
    ...expiryConditions(row),
    // While it is not ready, that is told as the reason why.
    row.phase === 'ready' && storage?.status === 'False' ? storage : undefined,
    conditionOf(conditions, 'UncleanStop'),
  ]
    .filter(condition => condition !== undefined)
    .map(({ reason, message }) => ({ reason, message }))
}

/** Those of the expiry, unless they are about one, or about a protection, that was changed since the operator looked. */
const expiryConditions = ({ status, expiresAt, deletionProtection }: Warned): (Condition | undefined)[] => {
  if (status?.expiresAt === undefined || Date.parse(status.expiresAt) !== expiresAt?.getTime()) return []
  const expired = conditionOf(status.conditions, 'Expired')
  const isAboutProtection = expired?.status === 'True' && expired.reason === 'Protected'
  return [isAboutProtection === deletionProtection ? expired : undefined, conditionOf(status.conditions, 'Expiring')]
}
