import { DomainError } from '../../../lib/errors/domain-error.ts'
import { requireRole } from '../../auth/authorize.ts'
import type { Handlers } from '../../context.ts'
import { findOperation } from '../../store/operations.ts'
import { operationView } from '../../views/operation-view.ts'

export const getOperation: Handlers['getOperation'] = async ({ params, call }, { database }) => {
  const { organizationId } = call
  const row = organizationId === undefined ? undefined : await findOperation(database, organizationId, params.operation)
  if (row === undefined) throw new DomainError('operation_not_found', 'There is no such operation in this organization')
  const { projectId, environmentId } = row
  requireRole(
    { principal: call.principal, target: { organizationId: row.organizationId, projectId, environmentId } },
    'viewer',
  )
  return { status: 200, body: operationView(row) }
}
