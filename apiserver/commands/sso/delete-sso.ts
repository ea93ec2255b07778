import { organizationNotFound } from '../../auth/authorize.ts'
import { lockOrganization } from '../../store/organizations.ts'
import { endSsoCredentials } from '../../store/sso-accounts.ts'
import { removeSsoConfiguration } from '../../store/sso-configurations.ts'
import type { Call, Reply } from '../call.ts'
import { callEvent } from '../call-events.ts'
import type { CommandDependencies } from '../dependencies.ts'
import { execute } from '../execute.ts'
import { ssoNotFound } from './sso-rules.ts'

/**
 * Ends single sign-on of an organization: sessions, tokens and grants of all its accounts of single sign-on end with this
 * transaction, since nobody vouches for them any more. Memberships stay.
 * @throws DomainError `organization_not_found`, `sso_not_found`
 */
export const deleteSso = (
  deps: CommandDependencies,
  call: Call,
  organizationId: string,
): Promise<Reply<204, undefined>> =>
  execute(deps, call, async sql => {
    if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
    const before = await removeSsoConfiguration(sql, organizationId)
    if (before === undefined) throw ssoNotFound()
    const ended = await endSsoCredentials(sql, organizationId)
    return {
      status: 204,
      body: undefined,
      audit: [
        callEvent(
          call,
          'delete_sso',
          { organizationId, resourceKind: 'sso', resourceId: organizationId },
          {
            issuer: before.issuer,
            client_id: before.clientId,
            sessions_ended: ended.sessions,
            tokens_revoked: ended.tokens,
          },
        ),
      ],
    }
  })
