import { environmentMissing } from '../../commands/environment-access.ts'
import type { Handlers } from '../../context.ts'
import { findEnvironment } from '../../store/environments.ts'
import { listOperations as list } from '../../store/operations.ts'
import { operationView } from '../../views/operation-view.ts'
import { environmentPath } from './environment-path.ts'

export const listOperations: Handlers['listOperations'] = async ({ params, query }, { database }) => {
  const path = environmentPath(params)
  const page = await list(database, path, query)
  // An environment that others made has none.
  if (page.items.length === 0 && (await findEnvironment(database, path)) === undefined)
    throw await environmentMissing(database, path)
  return { status: 200, body: { operations: page.items.map(operationView), next_cursor: page.nextCursor } }
}
