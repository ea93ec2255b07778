import { conditionOf } from '../../crds/conditions.ts'
import type { Phase } from '../../lib/model/environment.ts'
import { deletionPolicyWord } from '../contract/deletion-policy.ts'
import type { EnvironmentRecord } from '../contract/environments.ts'
import type { EnvironmentRow } from '../store/environments.ts'
import { epochSeconds } from './epoch-seconds.ts'
import { warningsOf } from './warnings.ts'

/** The phase that callers are shown: after DELETE's 202 nobody sees an earlier one again. */
export const shownPhase = (row: Pick<EnvironmentRow, 'phase' | 'deleting'>): Phase =>
  row.deleting && row.phase !== 'deleted' ? 'deleting' : row.phase

/** Why an environment is not ready, by its own conditions: what stalls it, else what it is not ready for. */
const complaint = (row: EnvironmentRow): { reason: string; message: string } | undefined => {
  if (row.phase === 'deleted') return undefined
  const conditions = row.status?.conditions
  const stalled = conditionOf(conditions, 'Stalled')
  if (stalled?.status === 'True') return stalled
  const ready = conditionOf(conditions, 'Ready')
  return ready === undefined || ready.status === 'True' ? undefined : ready
}

/** An environment. Never holds how to connect. */
export const environmentView = (row: EnvironmentRow): EnvironmentRecord => {
  const why = complaint(row)
  return {
    organization_id: row.organizationId,
    project_id: row.projectId,
    environment_id: row.environmentId,
    kind: row.kind,
    data_mode: row.dataMode,
    region: row.region,
    phase: shownPhase(row),
    postgres_major: row.postgresMajor,
    ...(row.ttlHours === null ? {} : { ttl_hours: row.ttlHours }),
    ...(row.expiresAt === null ? {} : { expires_at_epoch_seconds: epochSeconds(row.expiresAt) }),
    source_environment_id: row.sourceEnvironmentId,
    deletion_protection: row.deletionProtection,
    deletion_policy: deletionPolicyWord(row.deletionPolicy),
    status_reason: why?.reason ?? null,
    status_message: why?.message ?? null,
    warnings: warningsOf(row),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}
