import { DomainError } from '../../lib/errors/domain-error.ts'
import { organizationNotFound, requireRole } from '../auth/authorize.ts'
import { takeBackGrants } from '../store/login/device-requests.ts'
import { findMember, removeMembership } from '../store/memberships.ts'
import { lockOrganization } from '../store/organizations.ts'
import { endSessionsBoundTo } from '../store/sso-accounts.ts'
import { revokeBoundTokens } from '../store/tokens.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'
import { keepAnOwner, userIdOf } from './member-rules.ts'

export interface RemoveMemberInput {
  readonly organizationId: string
  /** `user:<id>`, the bare id, a mail address, or `sso:<sub>`. */
  readonly subject: string
}

/**
 * Ends a membership, and with it the member's tokens and sessions that are bound to the organization. Everybody may leave;
 * others are removed by admins, owners by owners.
 * @throws DomainError `member_not_found`, `forbidden`, `last_owner`
 */
export const removeMember = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, subject }: RemoveMemberInput,
): Promise<Reply<204, undefined>> =>
  execute(deps, call, async sql => {
    const userId = await userIdOf(sql, deps.settings, subject, organizationId)
    const leaves = userId === call.principal.userId
    if (!leaves) requireRole(call, 'admin')
    if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
    const member = userId === undefined ? undefined : await findMember(sql, organizationId, userId)
    if (member === undefined || userId === undefined)
      throw new DomainError('member_not_found', 'There is no member with this subject')
    if (member.role === 'owner') {
      if (!leaves) requireRole(call, 'owner')
      await keepAnOwner(sql, organizationId, userId)
    }
    await removeMembership(sql, organizationId, userId)
    await endSessionsBoundTo(sql, organizationId, userId)
    const tokens = await revokeBoundTokens(sql, userId, organizationId)
    await takeBackGrants(sql, userId, organizationId)
    return {
      status: 204,
      body: undefined,
      audit: [
        callEvent(
          call,
          'remove_member',
          { organizationId, resourceKind: 'member', resourceId: `user:${userId}` },
          // How many, not an event each: one call leaves one event. Which ones the log says by itself: all of theirs that began in it.
          { role: member.role, tokens_revoked: tokens },
        ),
      ],
    }
  })
