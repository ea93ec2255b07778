/** What the login's calls are made of: addresses, passwords, who signed in. */
import { z } from 'zod'
import { ROLES } from '../../../lib/model/credential.ts'
import { isEmailAddress, MAX_EMAIL, normalEmail } from '../../../lib/model/email-address.ts'
import { isoTime, organizationId, text } from '../scalars.ts'

/** Bodies of the login are small. */
export const LOGIN_BODY_BYTES = 8 * 1024

/** An address in any case; handlers get its one spelling. */
export const email = z
  .string()
  .max(MAX_EMAIL)
  .refine(isEmailAddress, { error: 'must be an ASCII mail address', params: { reason: 'invalid_format' } })
  .transform(normalEmail)
  .meta({
    description: 'Mail address, in any case',
    example: 'ada@example.com',
    override: { type: 'string', format: 'email', maxLength: MAX_EMAIL },
  })

/** A password as it is typed at a sign-in: whatever it is, it is only compared. */
export const typedPassword = text(1, 4096).meta({ description: 'The password', example: 'correct horse battery' })

/** A password to be set; who it is for decides whether it may be one, so its rules are judged by the command. */
export const newPassword = text(1, 4096).meta({
  description: 'The new password: 12 to 1,024 characters, kept as they are; none that is guessed first',
  example: 'seven wet stones at the pier',
})

/** A session's token. */
export const sessionToken = z.string().meta({
  description: 'The session’s token: send it as the bearer of the calls that follow',
  example: 'svc_ses_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})

export const SESSION_METHOD_WORDS = ['password', 'email_link', 'setup', 'sso'] as const

export const sessionRecord = z
  .object({
    session_id: z.string().meta({ description: 'Id of the session', example: 'ses_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
    token_prefix: z.string().meta({ description: 'The first characters of its token', example: 'svc_ses_3fK9xQ2m' }),
    current: z.boolean().meta({ description: 'Whether it made this call', example: true }),
    method: z.enum(SESSION_METHOD_WORDS).meta({ description: 'How it was begun', example: 'password' }),
    organization_id: organizationId.nullable().meta({
      description: 'Of single sign-on: the one organization that it reaches; null: all of its user’s',
      example: null,
    }),
    created_at: isoTime,
    last_seen_at: isoTime.meta({ description: 'Late by up to a minute', example: '2026-11-27T10:00:00.000Z' }),
    expires_at: isoTime.meta({
      description: 'When it ends if it is not used again; never later than its absolute end',
      example: '2026-11-27T12:00:00.000Z',
    }),
    client_ip: z.string().meta({ description: 'From where it was begun', example: '203.0.113.7' }),
    user_agent: z.string().nullable().meta({ description: 'What the client called itself', example: 'curl/8.5.0' }),
  })
  .meta({ id: 'Session' })
export type SessionRecord = z.infer<typeof sessionRecord>

export const personRecord = z
  .object({
    user_id: z.string().meta({ description: 'Id of the user', example: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
    email: z.string().nullable().meta({ description: 'Mail address, if there is one', example: 'ada@example.com' }),
    name: z.string().meta({ description: 'Display name', example: 'Ada' }),
    is_operator: z.boolean().meta({ description: 'Whether they run this service', example: false }),
    mfa_enabled: z.boolean().meta({ description: 'Whether a second factor is asked for', example: false }),
  })
  .meta({ id: 'Person' })
export type PersonRecord = z.infer<typeof personRecord>

/** The answer of everything that begins a session. */
export const signedIn = z
  .object({
    token: sessionToken,
    token_prefix: sessionRecord.shape.token_prefix,
    session: sessionRecord,
    user: personRecord,
  })
  .meta({ id: 'SignedIn' })
export type SignedIn = z.infer<typeof signedIn>

/** An organization of somebody's, with their role. */
export const membershipRecord = z.object({
  organization_id: organizationId,
  name: z.string().meta({ description: 'Display name', example: 'Acme' }),
  role: z.enum(ROLES).meta({ description: 'Their role', example: 'developer' }),
})

export const sessionExample = {
  session_id: 'ses_06dm3qz5hx7n0c8k2v4r9w1tbe',
  token_prefix: 'svc_ses_3fK9xQ2m',
  current: true,
  method: 'password' as const,
  organization_id: null,
  created_at: '2026-11-27T10:00:00.000Z',
  last_seen_at: '2026-11-27T10:00:00.000Z',
  expires_at: '2026-11-27T12:00:00.000Z',
  client_ip: '203.0.113.7',
  user_agent: 'curl/8.5.0',
}
export const personExample = {
  user_id: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
  email: 'ada@example.com',
  name: 'Ada',
  is_operator: false,
  mfa_enabled: false,
}
export const signedInExample = {
  token: 'svc_ses_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
  token_prefix: 'svc_ses_3fK9xQ2m',
  session: sessionExample,
  user: personExample,
}
