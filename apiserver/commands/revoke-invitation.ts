import { DomainError } from '../../lib/errors/domain-error.ts'
import { requireRole } from '../auth/authorize.ts'
import { lockInvitation, removeInvitation } from '../store/login/invitations.ts'
import { withdrawLetters } from '../store/mail-outbox.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

export const invitationNotFound = (): DomainError =>
  new DomainError('invitation_not_found', 'There is no such invitation: unknown, accepted, taken back or too old')

/**
 * Takes an invitation back, with its letter if that did not leave yet.
 * @throws DomainError `invitation_not_found`, `forbidden` for what an owner offered
 */
export const revokeInvitation = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
): Promise<Reply<204, undefined>> =>
  execute(deps, call, async sql => {
    const invitation = await lockInvitation(sql, organizationId, id)
    if (invitation === undefined) throw invitationNotFound()
    const { email, role } = invitation
    if (role === 'owner') requireRole(call, 'owner')
    await removeInvitation(sql, id)
    await withdrawLetters(sql, 'invitation', id)
    return {
      status: 204,
      body: undefined,
      audit: [
        callEvent(
          call,
          'revoke_invitation',
          { organizationId, resourceKind: 'invitation', resourceId: id },
          { email, role },
        ),
      ],
    }
  })
