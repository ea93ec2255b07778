import { newOneTimeToken } from '../../lib/credentials/one-time-token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { organizationNotFound, requireRole } from '../auth/authorize.ts'
import type { CreatedInvitation, CreateInvitationBody } from '../contract/invitations.ts'
import { type Mailbox, nextTurn, postLetter } from '../mail/post-letter.ts'
import { type AttemptLimit, countAttempt } from '../store/login/attempts.ts'
import {
  countInvitations,
  type InvitationRow,
  insertInvitation,
  lockInvitationOf,
  removeInvitation,
} from '../store/login/invitations.ts'
import { withdrawLetters } from '../store/mail-outbox.ts'
import { findMember } from '../store/memberships.ts'
import { lockOrganization, type OrganizationRow } from '../store/organizations.ts'
import type { Sql } from '../store/sql.ts'
import { findUserIdByEmail } from '../store/users.ts'
import { invitationView } from '../views/invitation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

const VALID_SECONDS = 7 * 86_400
const MAX_OPEN = 200
const AN_HOUR: AttemptLimit = { bucket: 'invitations', most: 30, windowSeconds: 3600 }

/** What inviting needs beside the rest. */
export interface InvitationDependencies extends CommandDependencies {
  /** undefined: no mail; the answer then holds the link. */
  readonly mailbox: Mailbox | undefined
}

const refuseMembers = async (sql: Sql, organizationId: string, email: string): Promise<void> => {
  const userId = await findUserIdByEmail(sql, email)
  if (userId !== undefined && (await findMember(sql, organizationId, userId)) !== undefined)
    throw new DomainError('member_exists', 'The account with this address is a member already')
}

const keepWithinLimits = async (sql: Sql, organizationId: string): Promise<void> => {
  const used = await countInvitations(sql, organizationId)
  if (used >= MAX_OPEN)
    throw new DomainError('quota_exceeded', `There are ${used} open invitations, ${MAX_OPEN} are allowed`, {
      details: { cap: 'invitations_per_organization', limit: MAX_OPEN, used },
    })
  const { allowed, retryAfterSeconds } = await countAttempt(sql, AN_HOUR, organizationId)
  if (!allowed)
    throw new DomainError('rate_limited', `Too many invitations, wait ${retryAfterSeconds} s`, {
      details: { 'violated-policies': ['invitations'] },
      retryAfterSeconds,
    })
}

/** The earlier one of an address, with its letter. What an owner offered is an owner's to replace. */
const removeEarlier = async (sql: Sql, call: Call, organizationId: string, email: string): Promise<string | null> => {
  const earlier = await lockInvitationOf(sql, organizationId, email)
  if (earlier === undefined) return null
  if (earlier.role === 'owner') requireRole(call, 'owner')
  await removeInvitation(sql, earlier.id)
  await withdrawLetters(sql, 'invitation', earlier.id)
  return earlier.id
}

const post = async (
  sql: Sql,
  mailbox: Mailbox,
  invitation: InvitationRow,
  organization: OrganizationRow,
  token: string,
): Promise<void> => {
  const { id, email, role, organizationId, invitedBy } = invitation
  const inviter = await findMember(sql, organizationId, invitedBy)
  await postLetter(sql, mailbox, {
    kind: 'invitation',
    about: id,
    recipient: email,
    parameters: {
      organization_id: organizationId,
      organization_name: organization.name,
      inviter_name: inviter?.name ?? '',
      role,
    },
    secret: { token },
    validSeconds: VALID_SECONDS,
    // Never left out: nobody else would send it.
    notBefore: await nextTurn(sql, 'invitation', email),
  })
}

/**
 * Invites an address, which replaces the invitation that it has.
 * @throws DomainError `forbidden`, `member_exists`, `quota_exceeded`, `rate_limited`
 */
export const createInvitation = async (
  deps: InvitationDependencies,
  call: Call,
  { organizationId, email, role }: CreateInvitationBody & { readonly organizationId: string },
): Promise<Reply<201, CreatedInvitation>> => {
  const { mailbox, settings } = deps
  const reply = await execute<201, CreatedInvitation>(deps, call, async sql => {
    const { userId } = call.principal
    if (userId === undefined) throw new DomainError('credential_not_allowed', 'Only users invite')
    if (role === 'owner') requireRole(call, 'owner')
    const organization = await lockOrganization(sql, organizationId)
    if (organization === undefined) throw organizationNotFound()
    await refuseMembers(sql, organizationId, email)
    const replaced = await removeEarlier(sql, call, organizationId, email)
    await keepWithinLimits(sql, organizationId)
    const { token, digest } = newOneTimeToken('inv')
    const id = newId('inv')
    const invitation = await insertInvitation(sql, {
      id,
      organizationId,
      email,
      role,
      invitedBy: userId,
      byMail: mailbox !== undefined,
      tokenDigest: digest,
      validSeconds: VALID_SECONDS,
    })
    if (mailbox !== undefined) await post(sql, mailbox, invitation, organization, token)
    const body = invitationView(invitation)
    return {
      status: 201,
      ...(mailbox === undefined
        ? { body: { ...body, invite_url: settings.links.page(`/invitations/${token}`) }, secret: { subjectId: id } }
        : { body }),
      audit: [
        callEvent(
          call,
          'create_invitation',
          { organizationId, resourceKind: 'invitation', resourceId: id },
          { email, role, replaced },
        ),
      ],
    }
  })
  mailbox?.wake()
  return reply
}
