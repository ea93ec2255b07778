/** Sign-in of coding agents: the device flow (RFC 8628). A person approves in a browser; the agent gets a token with scopes. */
import { z } from 'zod'
import { scopeList, TOKEN_TTLS } from './account-tokens.ts'
import { totpCode } from './login/mfa.ts'
import { LOGIN_BODY_BYTES, typedPassword } from './login/people.ts'
import { defineRoute } from './route.ts'
import { epochSeconds, isoTime, organizationId, text, tokenId, withCode } from './scalars.ts'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

const clientName = text(1, 80).meta({ description: 'What asks, for whoever approves', example: 'coder on laptop' })
/** Clients need no registration. Those that speak OAuth send one all the same. */
const clientId = text(1, 200).optional().meta({ description: 'Not used: clients need no registration' })
const deviceCode = text(1, 128).meta({
  description: 'The secret of the device',
  example: 'svc_dev_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
})
const userCode = text(1, 32).meta({
  description: 'The code that the device shows, in any case; hyphens and blanks may be left out',
  example: 'WDJB-MJHT',
})
const ttl = z.enum(TOKEN_TTLS).meta({ description: 'How long the token is to live', example: '24h' })

const split = (value: string): string[] => value.split(' ').filter(part => part !== '')

export const deviceCodeBody = z
  .strictObject({
    client_name: clientName,
    scopes: scopeList.optional().meta({
      description: 'What the token is to be limited to; without it `read`',
      example: ['project:acme/shop:deploy'],
    }),
    scope: text(1, 8000)
      .refine(value => scopeList.safeParse(split(value)).success, { error: 'must be scopes with blanks between them' })
      .optional()
      .meta({ description: 'The same as a text, as clients of OAuth send it', example: 'project:acme/shop:deploy' }),
    organization_id: organizationId.optional().meta({
      description: 'The organization that the token is bound to; required when a scope names a project',
      example: 'acme',
    }),
    ttl: ttl.optional().meta({ description: 'How long the token is to live; without it 8 hours', example: '24h' }),
    client_id: clientId,
  })
  .refine(body => body.scopes === undefined || body.scope === undefined, {
    error: 'must not come with scope',
    path: ['scopes'],
  })
export type DeviceCodeBody = z.output<typeof deviceCodeBody>

/** The scopes that a client asks for. */
export const requestedScopes = ({ scopes, scope }: DeviceCodeBody): readonly string[] =>
  scopes ?? (scope === undefined ? ['read'] : split(scope))

const deviceCodeRecord = z.object({
  device_code: deviceCode,
  user_code: userCode,
  verification_uri: z.url().meta({
    description: 'The page that the person opens',
    example: 'https://console.example.com/auth/device',
  }),
  verification_uri_complete: z.url().meta({
    description: 'The same with the code in it',
    example: 'https://console.example.com/auth/device?user_code=WDJB-MJHT',
  }),
  expires_in: z.int().meta({ description: 'Seconds that both codes are good', example: 600 }),
  interval: z.int().meta({ description: 'Seconds to wait between polls', example: 5 }),
})
export type DeviceCodeRecord = z.infer<typeof deviceCodeRecord>

export const deviceTokenBody = z.strictObject({
  grant_type: text(1, 100)
    .refine(value => value === DEVICE_GRANT, withCode('unsupported_grant_type', `must be ${DEVICE_GRANT}`))
    .meta({ description: `\`${DEVICE_GRANT}\``, example: DEVICE_GRANT }),
  device_code: deviceCode,
  client_id: clientId,
})
export type DeviceTokenBody = z.output<typeof deviceTokenBody>

const deviceTokenRecord = z.object({
  access_token: z.string().meta({
    description: 'The agent’s token: told to the device that fetched it, for ten minutes',
    example: 'svc_agt_project.acme.shop.deploy.exp-20261128T0930Z_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000',
  }),
  token_type: z.literal('Bearer').meta({ description: 'How it is sent', example: 'Bearer' }),
  expires_in: z.int().optional().meta({ description: 'Seconds that it lives; left out: for ever', example: 86_400 }),
  scope: z.string().meta({ description: 'What it may, with blanks between', example: 'project:acme/shop:deploy' }),
  token_id: tokenId,
  agent_message: z
    .string()
    .meta({ description: 'A text for a coding agent, with the token', example: 'You may call …' }),
  revoke_url: z.url().meta({
    description: 'What to DELETE to end it',
    example: 'https://db.example.com/v1/account/tokens/tok_06dm3qz5hx7n0c8k2v4r9w1tbe',
  }),
})
export type DeviceTokenRecord = z.infer<typeof deviceTokenRecord>

const deviceRequestRecord = z.object({
  user_code: userCode,
  client_name: clientName,
  client_ip: z.string().meta({ description: 'From where it asks', example: '203.0.113.7' }),
  requested_scopes: z
    .array(z.string())
    .meta({ description: 'What it asks for', example: ['project:acme/shop:deploy'] }),
  organization_id: organizationId.nullable().meta({ description: 'What it is to be bound to', example: 'acme' }),
  ttl_seconds: z
    .int()
    .nullable()
    .meta({ description: 'How long the token is to live; null: for ever', example: 86_400 }),
  expires_at: isoTime,
})

export const approveDeviceBody = z.strictObject({
  user_code: userCode,
  scopes: scopeList.meta({
    description: 'What is granted: each within one that was asked for',
    example: ['project:acme/shop:deploy'],
  }),
  organization_id: organizationId.optional().meta({ description: 'Binds the token to it', example: 'acme' }),
  ttl: ttl.optional().meta({ description: 'At most as long as was asked for', example: '24h' }),
  password: typedPassword.optional().meta({
    description: 'Needed, or totp_code, when the session’s user proved who they are over five minutes ago',
  }),
  totp_code: totpCode.optional(),
})
export type ApproveDeviceBody = z.output<typeof approveDeviceBody>

const denyDeviceBody = z.strictObject({ user_code: userCode })

const approvedDevice = z.object({
  token_id: tokenId,
  scopes: z.array(z.string()).meta({ description: 'What was granted', example: ['project:acme/shop:deploy'] }),
  expires_at: epochSeconds.nullable().meta({ description: 'Epoch seconds; null: never', example: 1795860000 }),
})
export type ApprovedDevice = z.infer<typeof approvedDevice>

const requestExample = {
  client_name: 'coder on laptop',
  scopes: ['project:acme/shop:deploy'],
  organization_id: 'acme',
  ttl: '24h',
}
const grantedExample = { scopes: ['project:acme/shop:deploy'], expires_at: 1795860000 }
const LOOKING = ['device_request_not_found', 'rate_limited'] as const

export const deviceFlowRoutes = {
  requestDeviceCode: defineRoute({
    operationId: 'requestDeviceCode',
    method: 'post',
    path: '/v1/auth/device/code',
    tag: 'Device flow',
    summary: 'Begin to sign a coding agent in',
    description:
      'RFC 8628: show the person user_code and verification_uri, then poll. As JSON or as a form. An address may begin ten times in five minutes. Clients need no registration.',
    policy: 'public',
    organization: 'none',
    speaksOAuth: true,
    body: deviceCodeBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'The codes', body: deviceCodeRecord },
    errors: ['scope_organization_required', 'scope_organization_mismatch', 'database_unavailable'],
    examples: {
      request: requestExample,
      response: {
        device_code: 'svc_dev_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M',
        user_code: 'WDJB-MJHT',
        verification_uri: 'https://console.example.com/auth/device',
        verification_uri_complete: 'https://console.example.com/auth/device?user_code=WDJB-MJHT',
        expires_in: 600,
        interval: 5,
      },
    },
  }),
  pollDeviceToken: defineRoute({
    operationId: 'pollDeviceToken',
    method: 'post',
    path: '/v1/auth/device/token',
    tag: 'Device flow',
    summary: 'Fetch the token, once it is approved',
    description:
      'RFC 8628: authorization_pending means to ask again after the interval, slow_down to do that with five seconds more from now on. One token is made; where its answer was lost, the same address may ask again for ten minutes and gets the same. As JSON or as a form.',
    policy: 'public',
    organization: 'none',
    speaksOAuth: true,
    body: deviceTokenBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'The agent’s token', body: deviceTokenRecord },
    errors: [
      'authorization_pending',
      'slow_down',
      'access_denied',
      'expired_token',
      'invalid_grant',
      'unsupported_grant_type',
      'database_unavailable',
    ],
    examples: {
      request: { grant_type: DEVICE_GRANT, device_code: 'svc_dev_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1M' },
      response: {
        access_token:
          'svc_agt_project.acme.shop.deploy.exp-20261128T0930Z_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000',
        token_type: 'Bearer',
        expires_in: 86_400,
        scope: 'project:acme/shop:deploy',
        token_id: 'tok_06dm3qz5hx7n0c8k2v4r9w1tbe',
        agent_message: 'You may call the API with this token …',
        revoke_url: 'https://db.example.com/v1/account/tokens/tok_06dm3qz5hx7n0c8k2v4r9w1tbe',
      },
    },
  }),
  getDeviceRequest: defineRoute({
    operationId: 'getDeviceRequest',
    method: 'get',
    path: '/v1/auth/device/requests/{user_code}',
    tag: 'Device flow',
    summary: 'Look at what a device asks for',
    description: 'Changes nothing. A session may miss five times in five minutes, an address twenty times.',
    policy: 'device.decide',
    organization: 'none',
    params: z.strictObject({ user_code: userCode }),
    idempotency: 'none',
    success: { status: 200, description: 'The request', body: deviceRequestRecord },
    errors: LOOKING,
    examples: {
      response: {
        user_code: 'WDJB-MJHT',
        client_name: 'coder on laptop',
        client_ip: '203.0.113.7',
        requested_scopes: ['project:acme/shop:deploy'],
        organization_id: 'acme',
        ttl_seconds: 86_400,
        expires_at: '2026-11-27T10:10:00.000Z',
      },
    },
  }),
  approveDevice: defineRoute({
    operationId: 'approveDevice',
    method: 'post',
    path: '/v1/auth/device/approve',
    tag: 'Device flow',
    summary: 'Grant a device a token of yours',
    description:
      'What is granted lies within what was asked for. Approving again what you approved answers the same. The token is made when the device fetches it.',
    policy: 'device.decide',
    organization: 'none',
    body: approveDeviceBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 200, description: 'What was granted', body: approvedDevice },
    errors: [
      ...LOOKING,
      'reauthentication_required',
      'invalid_credentials',
      'invalid_mfa_code',
      'sign_in_rate_limited',
      'login_busy',
      'scope_organization_required',
      'scope_organization_mismatch',
      'organization_not_found',
      'quota_exceeded',
    ],
    examples: {
      request: { user_code: 'WDJB-MJHT', scopes: ['project:acme/shop:deploy'], organization_id: 'acme' },
      response: { token_id: 'tok_06dm3qz5hx7n0c8k2v4r9w1tbe', ...grantedExample },
    },
  }),
  denyDevice: defineRoute({
    operationId: 'denyDevice',
    method: 'post',
    path: '/v1/auth/device/deny',
    tag: 'Device flow',
    summary: 'Refuse a device',
    description: 'Takes back what you approved too, as long as the device has not fetched its token.',
    policy: 'device.decide',
    organization: 'none',
    body: denyDeviceBody,
    maxBodyBytes: LOGIN_BODY_BYTES,
    idempotency: 'none',
    success: { status: 204, description: 'The device is told' },
    errors: LOOKING,
    examples: { request: { user_code: 'WDJB-MJHT' } },
  }),
}
