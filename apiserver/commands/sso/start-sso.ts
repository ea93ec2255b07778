import { newSsoFlow, ssoSecretsOf } from '../../../lib/credentials/sso-flow.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { StartedSso, StartSsoBody } from '../../contract/login/sso.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { insertSsoFlow } from '../../store/login/sso-flows.ts'
import { findSso } from '../../store/sso-configurations.ts'
import type { OpenCall, Reply } from '../call.ts'
import { tooMany } from '../device/request-device-code.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { FRESH_SECONDS } from '../login/prove-again.ts'
import { openProvider, redirectUriOf, ssoNotFound } from './sso-rules.ts'

/** A company signs in from one address in the morning. */
const STARTS: AttemptLimit = { bucket: 'sso-start', most: 60, windowSeconds: 300 }
const VALID_SECONDS = 600

/** Seconds within which somebody has to have proved who they are at the provider; undefined: whenever. */
export const maxAgeOf = (reauthenticates: boolean): number | undefined => (reauthenticates ? FRESH_SECONDS : undefined)

/**
 * Begins a sign-in at an organization's provider. What comes back is taken from the browser alone that holds the flow's token: a
 * link into somebody else's sign-in, which a state alone would be, signs nobody in.
 * @throws DomainError `rate_limited`, `console_not_configured`, `sso_not_found`, `identity_provider_unavailable`
 */
export const startSso = async (
  deps: LoginDependencies,
  call: OpenCall,
  { organization_id: organizationId, reauthenticate = false }: StartSsoBody,
): Promise<Reply<200, StartedSso>> => {
  const { database, settings, providers } = deps
  const { allowed, retryAfterSeconds } = await database.transaction(sql => countAttempt(sql, STARTS, call.clientKey))
  if (!allowed) throw tooMany(STARTS.bucket, retryAfterSeconds)
  const redirectUri = redirectUriOf(settings)
  if (redirectUri === undefined)
    throw new DomainError(
      'console_not_configured',
      'Nobody can come back from an identity provider: set SERVICE_CONSOLE_URL',
    )
  const sso = await findSso(database, organizationId)
  if (sso === undefined) throw ssoNotFound()
  const flow = newSsoFlow()
  const url = await providers.authorizationUrl(openProvider(deps, sso), {
    redirectUri,
    state: flow.state,
    ...ssoSecretsOf(settings.codeKey, flow.token),
    maxAgeSeconds: maxAgeOf(reauthenticate),
  })
  const expiresAt = await database.transaction(sql =>
    insertSsoFlow(sql, {
      stateDigest: flow.stateDigest,
      flowDigest: flow.tokenDigest,
      organizationId,
      revision: sso.revision,
      reauthenticates: reauthenticate,
      validSeconds: VALID_SECONDS,
    }),
  )
  const body = {
    authorization_url: url.href,
    state: flow.state,
    flow_token: flow.token,
    expires_at: expiresAt.toISOString(),
  }
  return { status: 200, body }
}
