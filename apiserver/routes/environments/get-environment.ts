import { environmentMissing } from '../../commands/environment-access.ts'
import type { Handlers } from '../../context.ts'
import { findEnvironment } from '../../store/environments.ts'
import { environmentView } from '../../views/environment-view.ts'
import { environmentPath } from './environment-path.ts'

export const getEnvironment: Handlers['getEnvironment'] = async ({ params }, { database }) => {
  const path = environmentPath(params)
  const row = await findEnvironment(database, path)
  if (row === undefined) throw await environmentMissing(database, path)
  return { status: 200, body: environmentView(row) }
}
