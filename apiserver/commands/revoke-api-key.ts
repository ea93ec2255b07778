import { DomainError } from '../../lib/errors/domain-error.ts'
import type { ApiKeyRecord } from '../contract/api-keys.ts'
import { revokeApiKey as endApiKey, lockApiKey } from '../store/api-keys.ts'
import { apiKeyView } from '../views/api-key-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

/**
 * Revokes a key, at once. One that is revoked already answers the same record and leaves no event.
 * @throws DomainError `api_key_not_found`, also for keys of other organizations
 */
export const revokeApiKey = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
): Promise<Reply<200, ApiKeyRecord>> =>
  execute(deps, call, async sql => {
    const before = await lockApiKey(sql, organizationId, id)
    if (before === undefined)
      throw new DomainError('api_key_not_found', 'There is no API key with this id in this organization')
    const revoked = await endApiKey(sql, id)
    if (revoked === undefined) return { status: 200, body: apiKeyView(before) }
    return {
      status: 200,
      body: apiKeyView(revoked),
      audit: [
        callEvent(
          call,
          'revoke_api_key',
          { organizationId, resourceKind: 'api_key', resourceId: id },
          { name: revoked.name },
        ),
      ],
    }
  })
