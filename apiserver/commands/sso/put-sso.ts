import { randomUUID } from 'node:crypto'
import { DomainError, type FieldError } from '../../../lib/errors/domain-error.ts'
import { organizationNotFound } from '../../auth/authorize.ts'
import type { PutSsoBody, SsoRecord } from '../../contract/sso.ts'
import { lockOrganization } from '../../store/organizations.ts'
import { endSsoCredentials } from '../../store/sso-accounts.ts'
import {
  findSso,
  putSsoConfiguration,
  type SsoConfigurationRow,
  ssoSecretPlace,
} from '../../store/sso-configurations.ts'
import { ssoView } from '../../views/sso-view.ts'
import type { Call, Reply } from '../call.ts'
import { callEvent } from '../call-events.ts'
import { execute } from '../execute.ts'
import { openProvider, redirectUriOf, type SsoDependencies } from './sso-rules.ts'

const invalid = (pointer: string, code: string, message: string): DomainError => {
  const error: FieldError = { in: 'body', pointer, code, message }
  return new DomainError('validation_failed', `The body field ${pointer} ${message}`, { errors: [error] })
}

/**
 * The secret to keep: a new one, or the one that is there. That one goes nowhere else: with another issuer it would be told to
 * whoever that is.
 */
const secretOf = (deps: SsoDependencies, body: PutSsoBody, before: SsoConfigurationRow | undefined): string => {
  if (body.client_secret !== undefined) return body.client_secret
  if (before?.issuer === body.issuer && before.clientId === body.client_id)
    return openProvider(deps.login, before).clientSecret
  throw invalid('#/client_secret', 'required', 'must be given with a new issuer or client_id')
}

/**
 * Lets an identity provider say who an organization's people are, in place of another. What was signed in with another issuer
 * or client is over with this transaction.
 * @throws DomainError `validation_failed`, `organization_not_found`
 */
export const putSso = async (
  deps: SsoDependencies,
  call: Call,
  { organizationId, ...body }: PutSsoBody & { readonly organizationId: string },
): Promise<Reply<200, SsoRecord>> => {
  if (!deps.login.providers.mayCall(new URL(body.issuer)))
    throw invalid('#/issuer', 'not_allowed', 'must be https, at an address that may be called')
  return execute(deps, call, async sql => {
    if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
    const before = await findSso(sql, organizationId)
    const secret = secretOf(deps, body, before)
    const revision = randomUUID()
    const row = await putSsoConfiguration(sql, {
      organizationId,
      revision,
      issuer: body.issuer,
      clientId: body.client_id,
      sealedSecret: deps.login.sealer.seal(ssoSecretPlace(revision), secret),
      defaultRole: body.default_role ?? null,
    })
    const isSame = before === undefined || (before.issuer === row.issuer && before.clientId === row.clientId)
    const ended = isSame ? { sessions: 0, tokens: 0 } : await endSsoCredentials(sql, organizationId)
    return {
      status: 200,
      body: ssoView(row, redirectUriOf(deps.login.settings)),
      audit: [
        callEvent(
          call,
          'put_sso',
          { organizationId, resourceKind: 'sso', resourceId: organizationId },
          {
            issuer: row.issuer,
            client_id: row.clientId,
            default_role: row.defaultRole,
            previous_issuer: before?.issuer ?? null,
            secret_given: body.client_secret !== undefined,
            sessions_ended: ended.sessions,
            tokens_revoked: ended.tokens,
          },
        ),
      ],
    }
  })
}
