import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { Handlers } from '../../context.ts'
import { findOperation } from '../../store/operations.ts'
import { operationView } from '../../views/operation-view.ts'

export const getOperation: Handlers['getOperation'] = async ({ params, call }, { database }) => {
  const { organizationId } = call
  const row = organizationId === undefined ? undefined : await findOperation(database, organizationId, params.operation)
  if (row === undefined) throw new DomainError('operation_not_found', 'There is no such operation in this organization')
  return { status: 200, body: operationView(row) }
}
