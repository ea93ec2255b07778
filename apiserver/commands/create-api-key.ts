import { newApiKey } from '../../lib/credentials/token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { organizationNotFound } from '../auth/authorize.ts'
import type { CreateApiKeyBody, CreatedApiKey } from '../contract/api-keys.ts'
import { countApiKeys, insertApiKey } from '../store/api-keys.ts'
import { lockOrganization } from '../store/organizations.ts'
import { apiKeyView } from '../views/api-key-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

/** Keys that an organization may have at once. */
const MAX_KEYS = 200

/**
 * Makes an API key of an organization. Only its digest is kept.
 * @throws DomainError `quota_exceeded`
 */
export const createApiKey = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, name, scopes }: CreateApiKeyBody & { readonly organizationId: string },
): Promise<Reply<201, CreatedApiKey>> =>
  execute(deps, call, async sql => {
    const { userId } = call.principal
    if (userId === undefined) throw new DomainError('credential_not_allowed', 'Only users make API keys')
    if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
    const used = await countApiKeys(sql, organizationId)
    if (used >= MAX_KEYS)
      throw new DomainError('quota_exceeded', `There are ${used} API keys, ${MAX_KEYS} are allowed`, {
        details: { cap: 'api_keys_per_organization', limit: MAX_KEYS, used },
      })
    const { token: secret, prefix: keyPrefix, digest } = newApiKey()
    const id = newId('key')
    const row = await insertApiKey(sql, { id, organizationId, name, scopes, keyPrefix, digest, createdBy: userId })
    return {
      status: 201,
      body: { ...apiKeyView(row), secret },
      secret: { subjectId: id },
      audit: [
        callEvent(
          call,
          'create_api_key',
          { organizationId, resourceKind: 'api_key', resourceId: id },
          { name, scopes },
        ),
      ],
    }
  })
