/** Signing in with a password, and the sessions that begin there. */
import { z } from 'zod'
import { defineRoute } from '../route.ts'
import { nextCursor, pageQuery, sessionId } from '../scalars.ts'
import { recoveryCode, totpCode } from './mfa.ts'
import {
  email,
  LOGIN_BODY_BYTES,
  membershipRecord,
  personExample,
  personRecord,
  sessionExample,
  sessionRecord,
  signedIn,
  signedInExample,
  typedPassword,
} from './people.ts'

export const signInBody = z.strictObject({
  email,
  password: typedPassword,
  totp_code: totpCode.optional(),
  recovery_code: recoveryCode.optional(),
})
export type SignInBody = z.output<typeof signInBody>

export const sessionRoutes = {
  signIn: defineRoute({
    operationId: 'signIn',
    method: 'post',
    path: '/v1/auth/builtin/sign-in',
    tag: 'Sign-in',
    summary: 'Sign in with a password',
    description:
      'Begins a session. An unknown address, a wrong password, a locked and a disabled account are answered alike. An account with a second factor needs a code too: without one the answer is mfa_required, with a token for the second step. While a session lives its token is replaced now and then, and when its user proves again who they are: the header Svc-Session-Token of any answer is the one to go on with.',
    policy: 'public',
    organization: 'none',
    builtinLogin: true,
    body: signInBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'A session', body: signedIn },
    errors: [
      'invalid_credentials',
      'mfa_required',
      'invalid_mfa_code',
      'sign_in_rate_limited',
      'login_busy',
      'database_unavailable',
    ],
    examples: { request: { email: 'ada@example.com', password: 'correct horse battery' }, response: signedInExample },
  }),
  signOut: defineRoute({
    operationId: 'signOut',
    method: 'post',
    path: '/v1/auth/builtin/sign-out',
    tag: 'Sign-in',
    summary: 'End the session that calls',
    policy: 'session.own',
    organization: 'none',
    idempotency: 'none',
    success: { status: 204, description: 'The session is over' },
    errors: [],
    examples: {},
  }),
  getSession: defineRoute({
    operationId: 'getSession',
    method: 'get',
    path: '/v1/auth/builtin/session',
    tag: 'Sign-in',
    summary: 'Who is signed in, and where they are a member',
    policy: 'session.own',
    organization: 'none',
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The session and its user',
      body: z.object({ user: personRecord, session: sessionRecord, organizations: z.array(membershipRecord) }),
    },
    errors: [],
    examples: {
      response: {
        user: personExample,
        session: sessionExample,
        organizations: [{ organization_id: 'acme', name: 'Acme', role: 'developer' }],
      },
    },
  }),
  listSessions: defineRoute({
    operationId: 'listSessions',
    method: 'get',
    path: '/v1/auth/builtin/sessions',
    tag: 'Sign-in',
    summary: 'List the caller’s sessions',
    description: 'Newest first.',
    policy: 'session.own',
    organization: 'none',
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The sessions',
      body: z.object({ sessions: z.array(sessionRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { sessions: [sessionExample], next_cursor: null } },
  }),
  revokeSession: defineRoute({
    operationId: 'revokeSession',
    method: 'delete',
    path: '/v1/auth/builtin/sessions/{session}',
    tag: 'Sign-in',
    summary: 'End one of the caller’s sessions',
    description:
      'Whoever operates this service ends anybody’s, in a session of their own: events of sign-ins name session_id. The event says who did it, revoked_by.',
    policy: 'session.own',
    organization: 'none',
    params: z.strictObject({ session: sessionId }),
    idempotency: 'none',
    success: { status: 204, description: 'The session is over' },
    errors: ['session_not_found'],
    examples: {},
  }),
  revokeOtherSessions: defineRoute({
    operationId: 'revokeOtherSessions',
    method: 'post',
    path: '/v1/auth/builtin/sessions/revoke-others',
    tag: 'Sign-in',
    summary: 'End all of the caller’s sessions but this one',
    policy: 'session.own',
    organization: 'none',
    idempotency: 'none',
    success: {
      status: 200,
      description: 'How many ended',
      body: z.object({ revoked: z.int().min(0).meta({ description: 'Sessions that ended', example: 2 }) }),
    },
    errors: [],
    examples: { response: { revoked: 2 } },
  }),
}
