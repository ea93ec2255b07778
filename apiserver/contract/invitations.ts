/** Invitations: an address is asked to become a member, with a role. */
import { z } from 'zod'
import { email } from './login/people.ts'
import { organizationParams, role } from './organizations.ts'
import { defineRoute } from './route.ts'
import { invitationId, isoTime, nextCursor, organizationId, pageQuery } from './scalars.ts'

/** An invitation that is open. */
export const invitationRecord = z
  .object({
    invitation_id: invitationId,
    organization_id: organizationId,
    email: z.string().meta({ description: 'Who is invited', example: 'ada@example.com' }),
    role,
    invited_by: z
      .string()
      .meta({ description: 'Subject of the inviter', example: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
    created_at: isoTime,
    expires_at: isoTime,
  })
  .meta({ id: 'Invitation' })
export type InvitationRecord = z.infer<typeof invitationRecord>

export const createdInvitation = invitationRecord
  .extend({
    invite_url: z.url().optional().meta({
      description: 'Where no mail is configured: the link to hand over, shown once',
      example: 'https://console.example.com/invitations/svc_inv_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
    }),
  })
  .meta({ id: 'CreatedInvitation' })
export type CreatedInvitation = z.infer<typeof createdInvitation>

export const createInvitationBody = z.strictObject({ email, role })
export type CreateInvitationBody = z.output<typeof createInvitationBody>

const example = {
  invitation_id: 'inv_06dm3qz5hx7n0c8k2v4r9w1tbe',
  organization_id: 'acme',
  email: 'ada@example.com',
  role: 'developer' as const,
  invited_by: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
  created_at: '2026-11-27T10:00:00.000Z',
  expires_at: '2026-12-04T10:00:00.000Z',
}

export const invitationRoutes = {
  listInvitations: defineRoute({
    operationId: 'listInvitations',
    method: 'get',
    path: '/v1/organizations/{org}/invitations',
    tag: 'Members',
    summary: 'List the open invitations of an organization',
    description: 'Oldest first.',
    policy: 'invitation.write',
    organization: 'path',
    params: organizationParams,
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The invitations',
      body: z.object({ invitations: z.array(invitationRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { invitations: [example], next_cursor: null } },
  }),
  createInvitation: defineRoute({
    operationId: 'createInvitation',
    method: 'post',
    path: '/v1/organizations/{org}/invitations',
    tag: 'Members',
    summary: 'Invite somebody by mail',
    description:
      'Good for seven days. Inviting an address again replaces its invitation, and the link with it. Only an owner invites an owner.',
    policy: 'invitation.write',
    organization: 'path',
    builtinLogin: true,
    params: organizationParams,
    body: createInvitationBody,
    idempotency: 'optional',
    success: { status: 201, description: 'The invitation', body: createdInvitation },
    errors: ['member_exists', 'quota_exceeded', 'idempotency_secret_expired'],
    examples: { request: { email: 'ada@example.com', role: 'developer' }, response: example },
  }),
  revokeInvitation: defineRoute({
    operationId: 'revokeInvitation',
    method: 'delete',
    path: '/v1/organizations/{org}/invitations/{invitation}',
    tag: 'Members',
    summary: 'Take an invitation back',
    policy: 'invitation.write',
    organization: 'path',
    params: organizationParams.extend({ invitation: invitationId }),
    idempotency: 'optional',
    success: { status: 204, description: 'Its link opens nothing any more' },
    errors: ['invitation_not_found'],
    examples: {},
  }),
}
