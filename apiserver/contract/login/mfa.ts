/** Second factors. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { isoTime, text } from '../scalars.ts'
import { LOGIN_BODY_BYTES, signedIn, signedInExample, typedPassword } from './people.ts'

export const totpCode = z
  .string()
  .regex(/^[0-9]{6}$/, 'must be six digits')
  .meta({ description: 'The code that the app shows', example: '492039' })
export const recoveryCode = text(24, 40).meta({
  description: 'A recovery code: 24 characters, in any case, hyphens and blanks may stand between them',
  example: 'MFRGGZDFMZTWQ2LKNNWG23TP',
})

const mfaState = z.object({
  totp: z.object({
    enabled: z.boolean().meta({ description: 'Whether sign-ins need a code', example: true }),
    enrolled_at: isoTime.nullable(),
  }),
  recovery_codes_remaining: z.int().min(0).meta({ description: 'Codes that were not used yet', example: 10 }),
})
export type MfaState = z.infer<typeof mfaState>

const pendingTotp = z.object({
  secret: z
    .string()
    .meta({ description: 'For apps that read no QR code', example: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }),
  otpauth_uri: z.string().meta({ description: 'What the QR code says', example: 'otpauth://totp/svc:ada?secret=JBSW' }),
  qr_svg: z.string().meta({ description: 'The QR code, SVG', example: '<svg/>' }),
  expires_at: isoTime,
})
export type PendingTotp = z.infer<typeof pendingTotp>

const recoveryCodes = z.object({
  recovery_codes: z
    .array(z.string())
    .meta({ description: 'Ten codes, shown once', example: ['MFRGGZDFMZTWQ2LKNNWG23TP'] }),
})
export type RecoveryCodes = z.infer<typeof recoveryCodes>
const enrolledTotp = recoveryCodes.extend({ enabled: z.literal(true) })
export type EnrolledTotp = z.infer<typeof enrolledTotp>

interface EitherCode {
  readonly totp_code?: string | undefined
  readonly recovery_code?: string | undefined
}
const hasOneCode = ({ totp_code: totp, recovery_code: recovery }: EitherCode): boolean =>
  (totp === undefined) !== (recovery === undefined)
const ONE_CODE = { error: 'must be given, or recovery_code, and not both', path: ['totp_code'] }

const signInMfaBody = z
  .strictObject({
    mfa_token: text(1, 200).meta({ description: 'The token of the first step', example: 'svc_mfa_3fK9xQ2mWc7R' }),
    totp_code: totpCode.optional(),
    recovery_code: recoveryCode.optional(),
  })
  .refine(hasOneCode, ONE_CODE)
export type SignInMfaBody = z.output<typeof signInMfaBody>

const removeTotpBody = z
  .strictObject({ password: typedPassword, totp_code: totpCode.optional(), recovery_code: recoveryCode.optional() })
  .refine(hasOneCode, ONE_CODE)

const shared = {
  tag: 'Sign-in',
  organization: 'none',
  maxBodyBytes: LOGIN_BODY_BYTES,
  idempotency: 'none',
} as const
const codes = ['MFRGGZDFMZTWQ2LKNNWG23TP']

export const mfaRoutes = {
  signInMfa: defineRoute({
    ...shared,
    operationId: 'signInMfa',
    builtinLogin: true,
    method: 'post',
    path: '/v1/auth/builtin/sign-in/mfa',
    summary: 'Sign in: the second step',
    description: 'With the token of a sign-in that was answered mfa_required, which lives for 5 minutes and 5 tries.',
    policy: 'public',
    body: signInMfaBody,
    success: {
      status: 200,
      description: 'A session',
      body: signedIn.extend({ recovery_codes_remaining: mfaState.shape.recovery_codes_remaining }),
    },
    errors: ['invalid_token', 'invalid_mfa_code', 'sign_in_rate_limited', 'database_unavailable'],
    examples: {
      request: { mfa_token: 'svc_mfa_3fK9xQ2mWc7R', totp_code: '492039' },
      response: { ...signedInExample, recovery_codes_remaining: 10 },
    },
  }),
  getMfa: defineRoute({
    ...shared,
    operationId: 'getMfa',
    method: 'get',
    path: '/v1/auth/builtin/mfa',
    summary: 'Which second factors the caller has',
    policy: 'factors.own',
    success: { status: 200, description: 'The second factors', body: mfaState },
    errors: [],
    examples: { response: { totp: { enabled: false, enrolled_at: null }, recovery_codes_remaining: 0 } },
  }),
  beginTotp: defineRoute({
    ...shared,
    operationId: 'beginTotp',
    builtinLogin: true,
    method: 'post',
    path: '/v1/auth/builtin/mfa/totp',
    summary: 'Draw a secret for an app that makes codes',
    description: 'It waits 10 minutes for its first code and is not asked for before.',
    policy: 'factors.own',
    body: z.strictObject({ password: typedPassword }),
    success: { status: 200, description: 'The secret', body: pendingTotp },
    errors: ['invalid_credentials', 'mfa_already_enabled', 'sign_in_rate_limited', 'login_busy'],
    examples: {
      request: { password: 'correct horse battery staple' },
      response: {
        secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
        otpauth_uri: 'otpauth://totp/svc:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=svc',
        qr_svg: '<svg/>',
        expires_at: '2026-11-27T10:10:00.000Z',
      },
    },
  }),
  confirmTotp: defineRoute({
    ...shared,
    operationId: 'confirmTotp',
    builtinLogin: true,
    method: 'post',
    path: '/v1/auth/builtin/mfa/totp/verify',
    summary: 'Confirm an app by its first code',
    description: 'From then on sign-ins ask for a code. The recovery codes are shown once.',
    policy: 'factors.own',
    body: z.strictObject({ code: totpCode }),
    success: { status: 200, description: 'Codes are asked for', body: enrolledTotp },
    errors: ['invalid_mfa_code', 'sign_in_rate_limited'],
    examples: { request: { code: '492039' }, response: { enabled: true, recovery_codes: codes } },
  }),
  removeTotp: defineRoute({
    ...shared,
    operationId: 'removeTotp',
    builtinLogin: true,
    method: 'delete',
    path: '/v1/auth/builtin/mfa/totp',
    summary: 'Ask for no code any more',
    description: 'Ends all other sessions.',
    policy: 'factors.own',
    body: removeTotpBody,
    success: { status: 204, description: 'No code is asked for' },
    errors: ['invalid_credentials', 'invalid_mfa_code', 'sign_in_rate_limited', 'login_busy'],
    examples: { request: { password: 'correct horse battery staple', totp_code: '492039' } },
  }),
  renewRecoveryCodes: defineRoute({
    ...shared,
    operationId: 'renewRecoveryCodes',
    builtinLogin: true,
    method: 'post',
    path: '/v1/auth/builtin/mfa/recovery-codes',
    summary: 'Draw new recovery codes',
    description: 'Those before are void.',
    policy: 'factors.own',
    body: z.strictObject({ password: typedPassword, totp_code: totpCode }),
    success: { status: 200, description: 'The codes', body: recoveryCodes },
    errors: ['invalid_credentials', 'invalid_mfa_code', 'sign_in_rate_limited', 'login_busy'],
    examples: {
      request: { password: 'correct horse battery staple', totp_code: '492039' },
      response: { recovery_codes: codes },
    },
  }),
}
