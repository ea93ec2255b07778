/** Passwords that are set. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { LOGIN_BODY_BYTES, newPassword, typedPassword } from './people.ts'

const changePasswordBody = z.strictObject({ current_password: typedPassword, new_password: newPassword })
export type ChangePasswordBody = z.output<typeof changePasswordBody>

export const passwordRoutes = {
  changePassword: defineRoute({
    operationId: 'changePassword',
    method: 'post',
    path: '/v1/auth/builtin/password',
    tag: 'Sign-in',
    summary: 'Change the caller’s password',
    description:
      'Ends all other sessions. The header Svc-Session-Token of the answer is the one to go on with. A wrong current password counts like a failed sign-in.',
    policy: 'factors.own',
    organization: 'none',
    builtinLogin: true,
    body: changePasswordBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 204, description: 'The password is another one' },
    errors: ['invalid_credentials', 'password_not_allowed', 'sign_in_rate_limited', 'login_busy'],
    examples: {
      request: { current_password: 'correct horse battery staple', new_password: 'seven wet stones at the pier' },
    },
  }),
}
