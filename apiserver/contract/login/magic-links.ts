/** Signing in by mail: a link, or a code to be typed. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { isoTime, text } from '../scalars.ts'
import { email, LOGIN_BODY_BYTES, signedIn, signedInExample } from './people.ts'

const token = text(1, 128).meta({
  description: 'The token of the link',
  example: 'svc_mgl_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})
const code = z
  .string()
  .regex(/^[0-9]{6}$/, 'must be six digits')
  .meta({ description: 'The six digits of the letter', example: '042137' })

/** What every request for a letter is answered. */
export const accepted = z.object({
  status: z.literal('accepted').meta({ description: 'Says nothing of whether a letter is sent', example: 'accepted' }),
})

export const magicLinkRequestBody = z.strictObject({ email })
export const magicLinkPreviewBody = z.strictObject({ token })
const byToken = z.strictObject({ token })
const byCode = z.strictObject({ email, code })
export const magicLinkVerifyBody = z.union([byToken, byCode])
export type MagicLinkVerifyBody = z.output<typeof magicLinkVerifyBody>

export const emailHintField = z
  .string()
  .meta({ description: 'The address, most of it hidden', example: 'a***@example.com' })

export const magicLinkRoutes = {
  requestMagicLink: defineRoute({
    operationId: 'requestMagicLink',
    method: 'post',
    path: '/v1/auth/builtin/magic-link/request',
    tag: 'Sign-in',
    summary: 'Ask for a sign-in link and code by mail',
    description:
      'Answered alike whether or not the address has an account. Both are good for 15 minutes and replace earlier ones. An address gets one letter a minute; what is asked for in between changes nothing. Administrators get a notice instead.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: magicLinkRequestBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 202, description: 'If somebody is to get a letter, it is on its way', body: accepted },
    errors: ['mail_not_configured', 'mail_rate_limited', 'database_unavailable'],
    examples: { request: { email: 'ada@example.com' }, response: { status: 'accepted' } },
  }),
  previewMagicLink: defineRoute({
    operationId: 'previewMagicLink',
    method: 'post',
    path: '/v1/auth/builtin/magic-link/preview',
    tag: 'Sign-in',
    summary: 'Look at a sign-in link',
    description: 'For the page that the link opens: changes nothing, however often a mail scanner calls it.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: magicLinkPreviewBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The link is good',
      body: z.object({
        email_hint: emailHintField,
        expires_at: isoTime,
        creates_account: z.boolean().meta({ description: 'Whether signing in makes an account', example: false }),
      }),
    },
    errors: ['invalid_magic_link', 'database_unavailable'],
    examples: {
      request: { token: 'svc_mgl_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M' },
      response: { email_hint: 'a***@example.com', expires_at: '2026-11-27T10:15:00.000Z', creates_account: false },
    },
  }),
  verifyMagicLink: defineRoute({
    operationId: 'verifyMagicLink',
    method: 'post',
    path: '/v1/auth/builtin/magic-link/verify',
    tag: 'Sign-in',
    summary: 'Sign in with a link or a code of a letter',
    description:
      'Send the token, or the address with the code. Each works once; a code takes five guesses. The first time that an account’s address is proved, a password that somebody set before is removed, and its sessions and tokens end with it.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: magicLinkVerifyBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'A session', body: signedIn },
    errors: ['invalid_magic_link', 'mfa_required', 'sign_in_rate_limited', 'database_unavailable'],
    examples: { request: { email: 'ada@example.com', code: '042137' }, response: signedInExample },
  }),
}
