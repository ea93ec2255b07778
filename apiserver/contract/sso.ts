/** Single sign-on of an organization: which identity provider says who its people are. */
import { z } from 'zod'
import { organizationParams } from './organizations.ts'
import { defineRoute } from './route.ts'
import { isoTime, organizationId, text } from './scalars.ts'

const MAX_ISSUER = 512

const isIssuer = (value: string): boolean => {
  const url = URL.parse(value)
  return (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    !/[?#\s\\]/.test(value) &&
    url.username === '' &&
    url.password === '' &&
    // Metadata that are named themselves would not have to be of this issuer.
    !url.pathname.includes('/.well-known')
  )
}

const issuer = text(1, MAX_ISSUER)
  .refine(isIssuer, {
    error: 'must be an https:// URL without a query, a fragment, a password and /.well-known',
    params: { reason: 'invalid_format' },
  })
  .meta({
    description: 'The identity provider: its issuer, as its metadata say it',
    example: 'https://login.example.com',
    override: { type: 'string', format: 'uri', maxLength: MAX_ISSUER },
  })
// Printable ASCII, which is what OAuth allows in both (RFC 6749, appendix A).
const printable = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')
const clientId = printable(255).meta({ description: 'Whom this service is to it', example: 'svc' })
const defaultRole = z.enum(['viewer', 'developer', 'admin']).meta({
  description: 'What somebody becomes who signs in for the first time',
  example: 'viewer',
})

const ssoRecord = z
  .object({
    organization_id: organizationId,
    issuer,
    client_id: clientId,
    default_role: defaultRole.nullable().meta({
      description: 'What somebody becomes who signs in for the first time; null: nothing, until an admin adds them',
      example: 'viewer',
    }),
    redirect_uri: z.string().nullable().meta({
      description: 'What to enter at the provider; null: SERVICE_CONSOLE_URL is not set, so that nobody can sign in',
      example: 'https://console.example.com/auth/sso/callback',
    }),
    created_at: isoTime,
    updated_at: isoTime,
  })
  .meta({ id: 'OrganizationSso' })
export type SsoRecord = z.infer<typeof ssoRecord>

export const putSsoBody = z.strictObject({
  issuer,
  client_id: clientId,
  client_secret: printable(4096).optional().meta({
    description: 'The secret for that; never told again. May be left out where issuer and client_id stay the same',
    example: 'GOCSPX-7b0e9d6c3a',
  }),
  default_role: defaultRole.optional().meta({
    description: 'What somebody becomes who signs in for the first time; left out: nothing, until an admin adds them',
    example: 'viewer',
  }),
})
export type PutSsoBody = z.output<typeof putSsoBody>

const example = {
  organization_id: 'acme',
  issuer: 'https://login.example.com',
  client_id: 'svc',
  default_role: 'viewer' as const,
  redirect_uri: 'https://console.example.com/auth/sso/callback',
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
}
const route = {
  path: '/v1/organizations/{org}/sso',
  tag: 'Single sign-on',
  organization: 'path',
  params: organizationParams,
} as const

export const ssoRoutes = {
  getSso: defineRoute({
    ...route,
    operationId: 'getSso',
    method: 'get',
    summary: 'Read which identity provider an organization has',
    policy: 'sso.read',
    idempotency: 'none',
    success: { status: 200, description: 'The provider, without the secret', body: ssoRecord },
    errors: ['sso_not_found'],
    examples: { response: example },
  }),
  putSso: defineRoute({
    ...route,
    operationId: 'putSso',
    method: 'put',
    summary: 'Let an identity provider say who an organization’s people are',
    description:
      'Sign-ins under way come to nothing. Another issuer or client ends the sessions and tokens of all accounts of single sign-on. The provider is not asked: start a sign-in to try it.',
    policy: 'sso.write',
    body: putSsoBody,
    maxBodyBytes: 16 * 1024,
    idempotency: 'required',
    success: { status: 200, description: 'The provider, without the secret', body: ssoRecord },
    errors: [],
    examples: {
      request: {
        issuer: 'https://login.example.com',
        client_id: 'svc',
        client_secret: 'GOCSPX-7b0e9d6c3a',
        default_role: 'viewer',
      },
      response: example,
    },
  }),
  deleteSso: defineRoute({
    ...route,
    operationId: 'deleteSso',
    method: 'delete',
    summary: 'End single sign-on of an organization',
    description:
      'Sessions and tokens of all its accounts of single sign-on end. Their memberships stay: with the same issuer again they are who they were.',
    policy: 'sso.write',
    idempotency: 'required',
    success: { status: 204, description: 'There is no single sign-on any more' },
    errors: ['sso_not_found'],
    examples: {},
  }),
}
