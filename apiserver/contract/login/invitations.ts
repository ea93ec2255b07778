/** What an invitation's link is for: looking at it, and accepting it. */
import { z } from 'zod'
import { role } from '../organizations.ts'
import { defineRoute } from '../route.ts'
import { organizationId, text } from '../scalars.ts'
import { LOGIN_BODY_BYTES, newPassword } from './people.ts'

const token = text(1, 128).meta({
  description: 'The token of the link',
  example: 'svc_inv_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})

export const previewInvitationBody = z.strictObject({ token })
export const acceptInvitationBody = z.strictObject({
  token,
  password: newPassword.optional().meta({ description: 'Of the account that is made; needed where there is none' }),
  name: text(1, 120).optional().meta({ description: 'Display name of that account', example: 'Ada' }),
})
export type AcceptInvitationBody = z.output<typeof acceptInvitationBody>

export const acceptedInvitation = z.object({
  organization_id: organizationId,
  role,
  user_id: z.string().meta({ description: 'Id of the member', example: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
})
export type AcceptedInvitation = z.infer<typeof acceptedInvitation>

const request = { token: 'svc_inv_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M' }

export const invitationLinkRoutes = {
  previewInvitation: defineRoute({
    operationId: 'previewInvitation',
    method: 'post',
    path: '/v1/auth/builtin/invitations/preview',
    tag: 'Sign-in',
    summary: 'Look at an invitation',
    description: 'Changes nothing.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: previewInvitationBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'What is offered',
      body: z.object({
        organization_id: organizationId,
        organization_name: z.string().meta({ description: 'Display name', example: 'Acme' }),
        role,
        email: z.string().meta({ description: 'Who is invited', example: 'ada@example.com' }),
        account_exists: z
          .boolean()
          .meta({ description: 'Whether to sign in with it, or to set a password', example: false }),
      }),
    },
    errors: ['invitation_not_found', 'database_unavailable'],
    examples: {
      request,
      response: {
        organization_id: 'acme',
        organization_name: 'Acme',
        role: 'developer',
        email: 'ada@example.com',
        account_exists: false,
      },
    },
  }),
  acceptInvitation: defineRoute({
    operationId: 'acceptInvitation',
    method: 'post',
    path: '/v1/auth/builtin/invitations/accept',
    tag: 'Sign-in',
    summary: 'Accept an invitation',
    description:
      'Where the address has no account, one is made with the password. Where it has one, send the session of that account; name and password stay as they are. Begins no session. What its inviter could not give any more is not there any more.',
    policy: 'public.or-session',
    organization: 'none',
    builtinLogin: true,
    body: acceptInvitationBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 201, description: 'The membership', body: acceptedInvitation },
    errors: [
      'invitation_not_found',
      'invitation_email_mismatch',
      'member_exists',
      'password_not_allowed',
      'login_busy',
    ],
    examples: {
      request: { ...request, password: 'correct horse battery', name: 'Ada' },
      response: { organization_id: 'acme', role: 'developer', user_id: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe' },
    },
  }),
}
