import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { ssoSecretsOf } from '../../../lib/credentials/sso-flow.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { VouchedPerson } from '../../auth/oidc/judge-id-token.ts'
import { SsoRejection } from '../../auth/oidc/sso-provider.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import type { FinishSsoBody } from '../../contract/login/sso.ts'
import { insertAccountEvent, insertAuditEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { findAccount } from '../../store/login/passwords.ts'
import { type SsoFlow, spendSsoFlow } from '../../store/login/sso-flows.ts'
import { holdMembership, putMembership } from '../../store/memberships.ts'
import type { Sql } from '../../store/sql.ts'
import { findSsoUserId, renameUser, type SsoIdentity } from '../../store/sso-accounts.ts'
import { findSso, holdSso, type SsoConfigurationRow } from '../../store/sso-configurations.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession, visitMetadata } from '../login/begin-session.ts'
import { tooManySignIns } from '../login/check-password.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { ensureSsoAccount } from './ensure-sso-account.ts'
import { openProvider, redirectUriOf } from './sso-rules.ts'
import { maxAgeOf } from './start-sso.ts'

const CALLBACKS: AttemptLimit = { bucket: 'sso-callback', most: 60, windowSeconds: 300 }

/** What a sign-in gets that is unknown, used, too old, of another browser, or of a provider that was changed since: one error for all. */
const invalidState = (): DomainError =>
  new DomainError('invalid_sso_state', 'This sign-in was not begun here, is used, or too old: begin anew')

/** Also for who is disabled. Who it is, is told to them alone: it is what an admin has to be told. */
const noMember = (subject: string): DomainError =>
  new DomainError('membership_required', 'You are no member of this organization: an admin can add you', {
    details: { sso_subject: subject },
  })

/** Notes that nobody was signed in, and why, in a word. */
const noteFailure = (
  sql: Sql,
  call: OpenCall,
  reason: string,
  about: { readonly organizationId?: string; readonly userId?: string | undefined } = {},
): Promise<void> =>
  insertAccountEvent(sql, {
    type: 'sign_in_failed',
    userId: about.userId ?? null,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { method: 'sso', organization_id: about.organizationId ?? null, reason }),
  })

/** The flow that the two keys name, which is over with this. @throws DomainError `invalid_sso_state`, `sign_in_rate_limited` */
const spend = async (
  { database }: LoginDependencies,
  call: OpenCall,
  { state, flow_token: token }: FinishSsoBody,
): Promise<SsoFlow> => {
  // Answered, not thrown: what was counted has to be kept.
  const flow = await database.transaction(async sql => {
    const { allowed, retryAfterSeconds } = await countAttempt(sql, CALLBACKS, call.clientKey)
    if (!allowed) return tooManySignIns(retryAfterSeconds)
    const keys = { stateDigest: tokenDigest(state), flowDigest: tokenDigest(token) }
    const spent = isOneTimeToken('sso', token) ? await spendSsoFlow(sql, keys) : undefined
    if (spent === undefined) await noteFailure(sql, call, 'no such sign-in')
    return spent ?? invalidState()
  })
  if (flow instanceof DomainError) throw flow
  return flow
}

/** Whom the provider vouches for. @throws DomainError `sso_rejected`, `identity_provider_unavailable` */
const ask = async (
  deps: LoginDependencies,
  sso: SsoConfigurationRow,
  { reauthenticates }: SsoFlow,
  body: FinishSsoBody,
): Promise<VouchedPerson> => {
  const { code, iss, state, flow_token: token } = body
  const redirectUri = redirectUriOf(deps.settings)
  if (code === undefined || redirectUri === undefined) throw new SsoRejection('an error of the provider')
  const secrets = ssoSecretsOf(deps.settings.codeKey, token)
  const checks = { redirectUri, state, ...secrets, maxAgeSeconds: maxAgeOf(reauthenticates) }
  return deps.providers.exchange(openProvider(deps, sso), { code, iss }, checks)
}

/**
 * The account of who signs in; undefined: they are no member. Somebody new becomes one where there is a role for that. Somebody who
 * was removed stays removed until an admin adds them: the provider alone does not bring them back.
 */
const memberOf = async (
  sql: Sql,
  call: OpenCall,
  { defaultRole }: SsoConfigurationRow,
  identity: SsoIdentity,
  { name }: VouchedPerson,
): Promise<string | undefined> => {
  const { organizationId } = identity
  const known = await findSsoUserId(sql, identity)
  if (known !== undefined || defaultRole === null) return known
  const { userId, isNew } = await ensureSsoAccount(sql, call, { ...identity, name })
  if (!isNew) return userId
  await putMembership(sql, organizationId, userId, defaultRole)
  await insertAuditEvent(sql, {
    organizationId,
    actor: `user:${userId}`,
    action: 'put_member',
    resourceKind: 'member',
    resourceId: `user:${userId}`,
    metadata: visitMetadata(call, { role: defaultRole, previous_role: null, method: 'sso', client_ip: call.clientIp }),
  })
  return userId
}

const begin = async (
  sql: Sql,
  { settings }: LoginDependencies,
  call: OpenCall,
  { organizationId, revision }: SsoFlow,
  person: VouchedPerson,
): Promise<SignedIn | DomainError> => {
  const sso = await holdSso(sql, organizationId, revision)
  if (sso === undefined) {
    await noteFailure(sql, call, 'the provider was changed', { organizationId })
    return invalidState()
  }
  const identity = { organizationId, issuer: sso.issuer, subject: person.subject }
  const userId = await memberOf(sql, call, sso, identity, person)
  const account = userId === undefined ? undefined : await findAccount(sql, userId)
  if (
    userId === undefined ||
    account === undefined ||
    account.disabledAt !== null ||
    !(await holdMembership(sql, organizationId, userId))
  ) {
    await noteFailure(sql, call, 'no member', { organizationId, userId })
    return noMember(person.subject)
  }
  await renameUser(sql, userId, person.name)
  const { authenticatedAt, endsAt } = person
  return beginSession(sql, settings, call, { ...account, name: person.name }, 'sso', {
    organizationId,
    authenticatedAt,
    endsAt,
  })
}

/**
 * Begins a session of whom an organization's provider vouches for. Of two calls with the same state one gets it.
 * @throws DomainError `invalid_sso_state`, `sso_rejected`, `membership_required`, `sign_in_rate_limited`,
 * `identity_provider_unavailable`
 */
export const finishSso = async (
  deps: LoginDependencies,
  call: OpenCall,
  body: FinishSsoBody,
): Promise<Reply<200, SignedIn>> => {
  const { database } = deps
  const flow = await spend(deps, call, body)
  const { organizationId, revision } = flow
  const sso = await findSso(database, organizationId)
  const isSame = sso?.revision === revision
  const person = await (isSame ? ask(deps, sso, flow, body) : Promise.reject(invalidState())).catch(
    async (error: unknown) => {
      if (error instanceof DomainError) {
        const reason = error instanceof SsoRejection ? error.reason : error.code
        await database.transaction(sql => noteFailure(sql, call, reason, { organizationId }))
      }
      throw error
    },
  )
  const outcome = await database.transaction(sql => begin(sql, deps, call, flow, person))
  if (outcome instanceof DomainError) throw outcome
  return { status: 200, body: outcome }
}
