import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { roleAtLeast } from '../../../lib/model/credential.ts'
import type { AcceptedInvitation, AcceptInvitationBody } from '../../contract/login/invitations.ts'
import { insertAuditEvent } from '../../store/audit.ts'
import {
  findOfferedInvitation,
  lockInvitation,
  type OfferedInvitation,
  removeInvitation,
} from '../../store/login/invitations.ts'
import { setPassword } from '../../store/login/passwords.ts'
import { withdrawLetters } from '../../store/mail-outbox.ts'
import { findMember, putMembership } from '../../store/memberships.ts'
import { lockOrganization } from '../../store/organizations.ts'
import type { Sql } from '../../store/sql.ts'
import { findUser, lockUserByEmail, verifyEmail } from '../../store/users.ts'
import type { OpenCall, Reply } from '../call.ts'
import { invitationNotFound } from '../revoke-invitation.ts'
import { visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'
import { makeAccount } from './make-account.ts'
import { hashNewPassword } from './new-password.ts'

const mismatch = (): DomainError =>
  new DomainError(
    'invitation_email_mismatch',
    'The invitation is for another address: whoever has an account accepts it signed in with that',
  )

/** Whether its inviter could still give it: what they may today counts, not what they might then. */
const isStillOffered = ({ role, inviterRole }: OfferedInvitation): boolean =>
  inviterRole !== null && roleAtLeast(inviterRole, role === 'owner' ? 'owner' : 'admin')

/** @throws DomainError `invitation_not_found` */
export const offeredInvitation = async (sql: Sql, token: string): Promise<OfferedInvitation> => {
  const offered = isOneTimeToken('inv', token) ? await findOfferedInvitation(sql, tokenDigest(token)) : undefined
  if (offered === undefined || !isStillOffered(offered)) throw invitationNotFound()
  return offered
}

/** Who becomes a member: whoever is signed in with that address, or a new account. */
const member = async (
  sql: Sql,
  call: OpenCall,
  { email, byMail }: OfferedInvitation,
  made: { readonly hash: string; readonly name: string | undefined } | undefined,
): Promise<string> => {
  const callerId = call.caller?.userId
  if (callerId !== undefined) {
    if ((await findUser(sql, callerId))?.email !== email) throw mismatch()
    return callerId
  }
  // One that was made meanwhile is somebody's who has to sign in.
  if (made === undefined || (await lockUserByEmail(sql, email)) !== undefined) throw mismatch()
  const user = await makeAccount(sql, call, { email, name: made.name })
  if (user === undefined) throw mismatch()
  await setPassword(sql, user.userId, made.hash)
  // The link went to that address alone.
  if (byMail) await verifyEmail(sql, user.userId)
  return user.userId
}

const passwordNeeded = (): DomainError =>
  new DomainError('validation_failed', 'The body field #/password must be given', {
    errors: [{ in: 'body', pointer: '#/password', code: 'required', message: 'must be given' }],
  })

/**
 * Makes whoever has the link a member. A new account is made here and not before.
 * @throws DomainError `invitation_not_found`, `invitation_email_mismatch`, `member_exists`, `password_not_allowed`, `login_busy`
 */
export const acceptInvitation = async (
  deps: LoginDependencies,
  call: OpenCall,
  { token, password, name }: AcceptInvitationBody,
): Promise<Reply<201, AcceptedInvitation>> => {
  const first = await offeredInvitation(deps.database, token)
  if (first.accountId !== null && call.caller === undefined) throw mismatch()
  if (first.accountId === null && call.caller !== undefined) throw mismatch()
  if (first.accountId === null && password === undefined) throw passwordNeeded()
  // Before the transaction: it takes a while.
  const made =
    first.accountId === null && password !== undefined
      ? { hash: await hashNewPassword(deps, { userId: undefined, email: first.email }, password, 'password'), name }
      : undefined
  const body = await deps.database.transaction(async sql => {
    const { organizationId, id } = first
    // In the order of those who change members: what is read of the inviter after this stays as it is.
    if ((await lockOrganization(sql, organizationId)) === undefined) throw invitationNotFound()
    if ((await lockInvitation(sql, organizationId, id)) === undefined) throw invitationNotFound()
    const offered = await offeredInvitation(sql, token)
    const userId = await member(sql, call, offered, made)
    if ((await findMember(sql, organizationId, userId)) !== undefined)
      throw new DomainError('member_exists', 'You are a member of this organization already')
    await putMembership(sql, organizationId, userId, offered.role)
    await removeInvitation(sql, id)
    await withdrawLetters(sql, 'invitation', id)
    await insertAuditEvent(sql, {
      organizationId,
      actor: `user:${userId}`,
      action: 'accept_invitation',
      resourceKind: 'invitation',
      resourceId: id,
      metadata: visitMetadata(call, {
        email: offered.email,
        role: offered.role,
        invited_by: `user:${offered.invitedBy}`,
        client_ip: call.clientIp,
      }),
    })
    return { organization_id: organizationId, role: offered.role, user_id: userId }
  })
  return { status: 201, body }
}
