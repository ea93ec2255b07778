import type { OperationRecord } from '../contract/operations.ts'
import type { OperationRow } from '../store/operations.ts'

/** An operation as callers poll it. */
export const operationView = (row: OperationRow): OperationRecord => ({
  id: row.id,
  kind: row.kind,
  state: row.state,
  organization_id: row.organizationId,
  environment: {
    organization_id: row.organizationId,
    project_id: row.projectId,
    environment_id: row.environmentId,
  },
  attempt_count: row.attemptCount,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
  result: row.result,
  error: row.error,
})
