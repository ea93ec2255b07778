/** Signing in at the identity provider of an organization. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { isoTime, organizationId, text } from '../scalars.ts'
import { LOGIN_BODY_BYTES, sessionExample, signedIn, signedInExample } from './people.ts'

const state = text(1, 128).meta({
  description: 'Names the sign-in; it travels in URLs',
  example: '3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok',
})
const flowToken = text(1, 128).meta({
  description: 'The secret of the browser that began the sign-in: for a cookie of its own, never for a URL',
  example: 'svc_sso_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})

export const startSsoBody = z.strictObject({
  organization_id: organizationId,
  reauthenticate: z.boolean().optional().meta({
    description: 'Asks the provider to let the person prove anew who they are, for what needs a fresh proof',
    example: false,
  }),
})
export type StartSsoBody = z.output<typeof startSsoBody>

const startedSso = z.object({
  authorization_url: z.string().meta({
    description: 'Where to send the browser',
    example: 'https://login.example.com/authorize?client_id=svc&response_type=code',
  }),
  state,
  flow_token: flowToken,
  expires_at: isoTime,
})
export type StartedSso = z.infer<typeof startedSso>

export const finishSsoBody = z
  .strictObject({
    state,
    flow_token: flowToken,
    code: text(1, 4096).optional().meta({ description: 'What the provider sent', example: 'SplxlOBeZQQYbYS6WxSbIA' }),
    error: text(1, 256)
      .optional()
      .meta({ description: 'What it sent instead, e.g. access_denied', example: 'access_denied' }),
    iss: text(1, 1024)
      .optional()
      .meta({ description: 'Who it says it is (RFC 9207), where it does', example: 'https://login.example.com' }),
  })
  .refine(body => (body.code === undefined) !== (body.error === undefined), {
    error: 'must come, or error instead of it',
    path: ['code'],
  })
export type FinishSsoBody = z.output<typeof finishSsoBody>

const route = {
  method: 'post',
  tag: 'Single sign-on',
  policy: 'public',
  organization: 'none',
  maxBodyBytes: LOGIN_BODY_BYTES,
  idempotency: 'none',
} as const

export const ssoLoginRoutes = {
  startSso: defineRoute({
    ...route,
    operationId: 'startSso',
    path: '/v1/auth/sso/start',
    summary: 'Begin to sign in at the identity provider of an organization',
    description:
      'For the console’s server: it keeps flow_token in a cookie of the browser (HttpOnly, Secure, SameSite=Lax), sends the browser to authorization_url, and calls the second step when it comes back to /auth/sso/callback of SERVICE_CONSOLE_URL. Good for ten minutes. An address may begin sixty times in five minutes.',
    body: startSsoBody,
    success: { status: 200, description: 'Where to go, and what to bring back', body: startedSso },
    errors: ['sso_not_found', 'console_not_configured', 'identity_provider_unavailable', 'database_unavailable'],
    examples: {
      request: { organization_id: 'acme' },
      response: {
        authorization_url: 'https://login.example.com/authorize?client_id=svc&response_type=code',
        state: '3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok',
        flow_token: 'svc_sso_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
        expires_at: '2026-11-27T10:10:00.000Z',
      },
    },
  }),
  finishSso: defineRoute({
    ...route,
    operationId: 'finishSso',
    path: '/v1/auth/sso/callback',
    summary: 'Sign in with what the identity provider sent',
    description:
      'Begins a session that reaches the organization alone. It ends when the provider says (`session_expiry`) if that is before the end of all sessions. Works once.',
    body: finishSsoBody,
    success: { status: 200, description: 'A session', body: signedIn },
    errors: [
      'invalid_sso_state',
      'sso_rejected',
      'membership_required',
      'sign_in_rate_limited',
      'identity_provider_unavailable',
      'database_unavailable',
    ],
    examples: {
      request: {
        state: '3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok',
        flow_token: 'svc_sso_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
        code: 'SplxlOBeZQQYbYS6WxSbIA',
        iss: 'https://login.example.com',
      },
      response: {
        ...signedInExample,
        session: { ...sessionExample, method: 'sso', organization_id: 'acme' },
        user: { ...signedInExample.user, email: null },
      },
    },
  }),
}
