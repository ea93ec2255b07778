import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { authorizeProduction } from '../auth/authorize.ts'
import { insertAuditEvent } from '../store/audit.ts'
import { type EnvironmentRow, findEnvironment } from '../store/environments.ts'
import { shownPhase } from '../views/environment-view.ts'
import type { Call } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { environmentMissing, invalidPhase } from './environment-access.ts'

/** An environment that can be connected to: it has a resource and an endpoint. */
export type ConnectableEnvironment = EnvironmentRow & {
  readonly uid: string
  readonly status: NonNullable<EnvironmentRow['status']> & {
    readonly endpoint: NonNullable<NonNullable<EnvironmentRow['status']>['endpoint']>
  }
}

const isConnectable = (row: EnvironmentRow): row is ConnectableEnvironment =>
  row.uid !== null && row.status?.endpoint !== undefined

/**
 * Lets a caller read how to connect, and records that they did before anybody tells them.
 * @throws DomainError `project_not_found`, `environment_not_found`, `forbidden`, `invalid_phase`
 */
export const readConnection = (
  deps: Pick<CommandDependencies, 'database'>,
  call: Call,
  path: EnvironmentPath,
): Promise<ConnectableEnvironment> =>
  deps.database.transaction(async sql => {
    const environment = await findEnvironment(sql, path)
    if (environment === undefined) throw await environmentMissing(sql, path)
    authorizeProduction(call, environment)
    const phase = shownPhase(environment)
    const isOver = phase === 'deleting' || phase === 'deleted'
    if (isOver || !isConnectable(environment))
      throw invalidPhase('connect to', path.environmentId, phase, 'one that has been ready')
    await insertAuditEvent(sql, callEvent(call, 'read_connection', environmentResource(path)))
    return environment
  })
