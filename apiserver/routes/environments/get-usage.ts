import { environmentMissing } from '../../commands/environment-access.ts'
import type { ApiContext, Handlers } from '../../context.ts'
import { type EnvironmentRow, findEnvironment } from '../../store/environments.ts'
import { type MeasuredUsage, measureUsage } from '../../tenant/measure-usage.ts'
import { usageView } from '../../views/usage-view.ts'
import { environmentPath } from './environment-path.ts'

/** What can be measured now: a suspended, starting or broken database cannot, which is no error of this call. */
const measure = async (row: EnvironmentRow, context: ApiContext): Promise<MeasuredUsage | undefined> => {
  const endpoint = row.status?.endpoint
  if (row.phase !== 'ready' || row.uid === null || endpoint === undefined) return undefined
  const { namespace, resourceName: name, uid } = row
  const credentials = await context.credentials.read({ namespace, name, uid })
  if (credentials === undefined) return undefined
  try {
    const { tenantAddress: address } = context
    const caCertificate = endpoint.caCertificate ?? context.caCertificate
    return await measureUsage({ endpoint, credential: credentials.ops, caCertificate, address })
  } catch (error) {
    context.log.warn({ err: error, environment: name }, 'Cannot measure the usage of an environment')
    return undefined
  }
}

export const getUsage: Handlers['getUsage'] = async ({ params }, context) => {
  const path = environmentPath(params)
  const row = await findEnvironment(context.database, path)
  if (row === undefined) throw await environmentMissing(context.database, path)
  return { status: 200, body: usageView(row, context.plan, await measure(row, context), new Date()) }
}
