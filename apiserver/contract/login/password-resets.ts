/** Links with which somebody sets a new password. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { isoTime, text } from '../scalars.ts'
import { accepted } from './magic-links.ts'
import { email, LOGIN_BODY_BYTES, newPassword, typedPassword } from './people.ts'

const resetToken = text(1, 200).meta({
  description: 'The token of the link: what stands behind its last slash',
  example: 'svc_rst_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})

const issueResetBody = z.strictObject({ email, admin_password: typedPassword })
export type IssueResetBody = z.output<typeof issueResetBody>

const issuedReset = z.object({
  reset_url: z.url().meta({
    description: 'The link; shown once, for whom it is meant',
    example: 'https://console.example.com/reset-password/svc_rst_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
  }),
  token_prefix: z.string().meta({ description: 'The first characters of its token', example: 'svc_rst_3fK9xQ2m' }),
  expires_at: isoTime,
})
export type IssuedReset = z.infer<typeof issuedReset>

const resetPreview = z.object({
  email_hint: z.string().nullable().meta({ description: 'Whose it is', example: 'a***@example.com' }),
  expires_at: isoTime,
})
export type ResetPreview = z.infer<typeof resetPreview>

const previewResetBody = z.strictObject({ token: resetToken })
const completeResetBody = z.strictObject({ token: resetToken, new_password: newPassword })
export type CompleteResetBody = z.output<typeof completeResetBody>

const token = 'svc_rst_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M'

export const passwordResetRoutes = {
  requestPasswordReset: defineRoute({
    operationId: 'requestPasswordReset',
    method: 'post',
    path: '/v1/auth/builtin/password-resets/request',
    tag: 'Sign-in',
    summary: 'Ask by mail for a link with which to set a new password',
    description:
      'Answered alike whether or not the address has an account. Good for an hour, once, in place of earlier ones. An address gets one letter a minute; what is asked for in between changes nothing.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: z.strictObject({ email }),
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 202, description: 'If somebody is to get a letter, it is on its way', body: accepted },
    errors: ['mail_not_configured', 'mail_rate_limited', 'database_unavailable'],
    examples: { request: { email: 'ada@example.com' }, response: { status: 'accepted' } },
  }),
  issuePasswordReset: defineRoute({
    operationId: 'issuePasswordReset',
    method: 'post',
    path: '/v1/auth/builtin/password-resets',
    tag: 'Sign-in',
    summary: 'Issue a link with which somebody sets a new password',
    description: 'Good for 24 hours, once, in place of earlier ones. Not for the caller’s own account.',
    policy: 'login.administer',
    organization: 'none',
    builtinLogin: true,
    body: issueResetBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 201, description: 'The link', body: issuedReset },
    errors: ['forbidden', 'invalid_credentials', 'own_account', 'user_not_found', 'sign_in_rate_limited', 'login_busy'],
    examples: {
      request: { email: 'ada@example.com', admin_password: 'correct horse battery staple' },
      response: {
        reset_url: `https://console.example.com/reset-password/${token}`,
        token_prefix: 'svc_rst_3fK9xQ2m',
        expires_at: '2026-11-28T10:00:00.000Z',
      },
    },
  }),
  previewPasswordReset: defineRoute({
    operationId: 'previewPasswordReset',
    method: 'post',
    path: '/v1/auth/builtin/password-resets/preview',
    tag: 'Sign-in',
    summary: 'Say whose password a link sets',
    description: 'Spends nothing.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: previewResetBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'Whose it is', body: resetPreview },
    errors: ['invalid_reset_token', 'sign_in_rate_limited', 'database_unavailable'],
    examples: {
      request: { token },
      response: { email_hint: 'a***@example.com', expires_at: '2026-11-28T10:00:00.000Z' },
    },
  }),
  completePasswordReset: defineRoute({
    operationId: 'completePasswordReset',
    method: 'post',
    path: '/v1/auth/builtin/password-resets/complete',
    tag: 'Sign-in',
    summary: 'Set a password with a link',
    description: 'Ends every session of the account and a lock, and begins none: sign in with the new password.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: completeResetBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 204, description: 'The password is set' },
    errors: [
      'invalid_reset_token',
      'password_not_allowed',
      'sign_in_rate_limited',
      'login_busy',
      'database_unavailable',
    ],
    examples: { request: { token, new_password: 'seven wet stones at the pier' } },
  }),
}
