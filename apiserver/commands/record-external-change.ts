/**
 * Records what nobody asked the API for: kubectl's changes, expiry, vanished resources. Called only by the projector, in
 * the transaction that folds the change, as its last step. It says what was observed; who did it stays in the cluster's
 * own audit log.
 */
import type { AuditAction } from '../../lib/model/audit.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { insertAuditEvent } from '../store/audit.ts'
import { insertExternalChange } from '../store/external-changes.ts'
import type { Sql } from '../store/sql.ts'

/** What was observed of an environment. */
export interface ObservedChange {
  readonly path: EnvironmentPath
  readonly uid: string
  /** Together with the uid, what makes it the same change. */
  readonly generation: number
  readonly actor: string
  readonly action: Extract<AuditAction, 'create_environment' | 'delete_environment' | 'external_change'>
  readonly metadata: Readonly<Record<string, unknown>>
}

/** The actor of a change that a client of the resource store made. */
export const clientActor = (manager: string | undefined): string => `kubernetes:${manager ?? 'unknown'}`

/**
 * Records the change once.
 * @returns false when it was recorded before
 */
export const recordExternalChange = async (sql: Sql, change: ObservedChange): Promise<boolean> => {
  if (!(await insertExternalChange(sql, change.uid, change.generation))) return false
  const { organizationId, projectId, environmentId } = change.path
  await insertAuditEvent(sql, {
    organizationId,
    actor: change.actor,
    action: change.action,
    resourceKind: 'environment',
    resourceId: `${projectId}/${environmentId}`,
    metadata: { ...change.metadata, observed: true, uid: change.uid },
  })
  return true
}
