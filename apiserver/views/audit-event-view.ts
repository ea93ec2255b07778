import type { AuditEventRecord } from '../contract/audit-events.ts'
import type { AuditEventRow } from '../store/audit.ts'

export const auditEventView = (row: AuditEventRow): AuditEventRecord => ({
  id: row.id,
  organization_id: row.organizationId,
  actor: row.actor,
  action: row.action,
  resource_kind: row.resourceKind,
  resource_id: row.resourceId,
  occurred_at: row.occurredAt.toISOString(),
  metadata: { ...row.metadata },
})
