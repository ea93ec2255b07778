import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { requireRole } from '../auth/authorize.ts'
import { deletionPolicyOf } from '../contract/deletion-policy.ts'
import type { EnvironmentRecord, UpdateEnvironmentBody } from '../contract/environments.ts'
import { setDeletionRules } from '../store/environments.ts'
import { insertUpdateIntent } from '../store/intents.ts'
import { together } from '../store/sql.ts'
import { environmentView } from '../views/environment-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { accessEnvironment, assertAlive, operationInProgress } from './environment-access.ts'
import { execute } from './execute.ts'

/**
 * Changes the rules of an environment's deletion; they hold for this API at once, and for the resource when the intent
 * is carried. It needs no operation, so it may be called while one is under way, except a deletion.
 * @throws DomainError `environment_not_found`, `forbidden` (production needs an admin), `operation_in_progress`,
 * `invalid_phase`
 */
export const updateEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  body: UpdateEnvironmentBody,
): Promise<Reply<200, EnvironmentRecord>> =>
  execute(deps, call, async sql => {
    const before = await accessEnvironment(sql, call, path)
    if (before.kind === 'production') requireRole(call.principal, 'admin')
    if (before.open?.kind === 'delete_environment') throw operationInProgress(before.open)
    assertAlive('update', before)

    const protection = body.deletion_protection ?? before.deletionProtection
    const policy = body.deletion_policy === undefined ? before.deletionPolicy : deletionPolicyOf(body.deletion_policy)
    const changes = {
      ...(protection === before.deletionProtection ? {} : { deletionProtection: protection }),
      ...(policy === before.deletionPolicy ? {} : { deletionPolicy: policy }),
    }
    const isChange = Object.keys(changes).length > 0
    const [after] = isChange
      ? await together(
          setDeletionRules(sql, before.id, protection, policy),
          insertUpdateIntent(sql, before.id, call.requestId, changes),
        )
      : [before]
    if (after === undefined) throw new Error('A locked environment is gone')
    return {
      status: 200,
      body: environmentView({ ...after, deleting: false }),
      ...(isChange ? { wakes: before.id } : {}),
      audit: [callEvent(call, 'update_environment', environmentResource(path), { ...body })],
    }
  })
