/** The first administrator. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { text } from '../scalars.ts'
import { email, LOGIN_BODY_BYTES, newPassword, signedIn, signedInExample } from './people.ts'

const setUpBody = z.strictObject({
  setup_token: text(1, 200).meta({
    description: 'The token that the server said in its log at its last start',
    example: 'svc_setup_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
  }),
  email,
  password: newPassword,
  name: text(1, 120).default('').meta({ description: 'Display name', example: 'Ada' }),
})
export type SetUpBody = z.output<typeof setUpBody>

const shared = {
  path: '/v1/auth/builtin/setup',
  tag: 'Sign-in',
  policy: 'public',
  organization: 'none',
  builtinLogin: true,
} as const

export const setupRoutes = {
  getSetup: defineRoute({
    ...shared,
    operationId: 'getSetup',
    method: 'get',
    summary: 'Whether the first administrator is still to be made',
    idempotency: 'none',
    success: {
      status: 200,
      description: 'Whether it is',
      body: z.object({
        setup_required: z.boolean().meta({ description: 'No operator can sign in yet', example: false }),
      }),
    },
    errors: ['database_unavailable'],
    examples: { response: { setup_required: false } },
  }),
  setUp: defineRoute({
    ...shared,
    operationId: 'setUp',
    method: 'post',
    summary: 'Make the first administrator',
    description: 'An account that has the address becomes the administrator’s, with this password.',
    body: setUpBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 201, description: 'A session of the administrator', body: signedIn },
    errors: [
      'invalid_setup_token',
      'password_not_allowed',
      'setup_complete',
      'sign_in_rate_limited',
      'login_busy',
      'database_unavailable',
    ],
    examples: {
      request: {
        setup_token: 'svc_setup_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
        email: 'ada@example.com',
        password: 'seven wet stones at the pier',
        name: 'Ada',
      },
      response: { ...signedInExample, session: { ...signedInExample.session, method: 'setup' as const } },
    },
  }),
}
