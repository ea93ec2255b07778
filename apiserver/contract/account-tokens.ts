/** Account tokens: the caller's own personal tokens. */
import { z } from 'zod'
import { defineRoute } from './route.ts'
import { epochSeconds, nextCursor, organizationId, pageQuery, text, tokenId, withCode } from './scalars.ts'

/** The lifetimes that `ttl` names. */
export const TOKEN_TTLS = ['30m', '1h', '24h', '7d', '30d', 'never'] as const

const name = text(1, 200).meta({ description: 'What the token is for', example: 'laptop' })

/** A token, without its secret. */
export const tokenRecord = z
  .object({
    id: tokenId,
    name,
    token_prefix: z.string().meta({ description: 'The first characters of the token', example: 'svc_pat_3fK9xQ2m' }),
    kind: z.enum(['personal', 'agent']).meta({ description: 'What kind of token', example: 'personal' }),
    scopes: z.array(z.string()).meta({ description: 'Agent tokens: what it is limited to', example: [] }),
    organization_id: organizationId
      .nullable()
      .meta({ description: 'Agent tokens: the organization it is bound to', example: null }),
    created_at: epochSeconds,
    last_used_at: epochSeconds.nullable().meta({ description: 'Epoch seconds, late by up to a minute', example: null }),
    expires_at: epochSeconds.nullable().meta({ description: 'Epoch seconds; null: never', example: null }),
    revoked_at: epochSeconds.nullable().meta({ description: 'Epoch seconds; null: active', example: null }),
  })
  .meta({ id: 'Token' })
export type TokenRecord = z.infer<typeof tokenRecord>

/** A token just made, with its secret. */
export const createdToken = tokenRecord
  .extend({
    token: z.string().meta({
      description: 'The secret: shown this once',
      example: 'svc_pat_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000',
    }),
  })
  .meta({ id: 'CreatedToken' })
export type CreatedToken = z.infer<typeof createdToken>

export const createTokenBody = z
  .strictObject({
    name,
    expires_in_days: z.int().min(1).max(3650).optional().meta({ description: 'Days to live', example: 30 }),
    ttl: z.enum(TOKEN_TTLS).optional().meta({ description: 'Time to live, instead of expires_in_days' }),
  })
  .refine(
    body => body.ttl === undefined || body.expires_in_days === undefined,
    withCode('expiry_conflict', 'must hold ttl or expires_in_days, not both'),
  )
export type CreateTokenBody = z.output<typeof createTokenBody>

const example = {
  id: 'tok_06dm3qz5hx7n0c8k2v4r9w1tbe',
  name: 'laptop',
  token_prefix: 'svc_pat_3fK9xQ2m',
  kind: 'personal',
  scopes: [],
  organization_id: null,
  created_at: 1795773600,
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
}

export const accountTokenRoutes = {
  listTokens: defineRoute({
    operationId: 'listTokens',
    method: 'get',
    path: '/v1/account/tokens',
    tag: 'Account tokens',
    summary: 'List the caller’s tokens',
    description: 'Newest first; revoked ones stay for 30 days.',
    policy: 'tokens.own',
    organization: 'none',
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The tokens, without their secrets',
      body: z.object({ tokens: z.array(tokenRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { tokens: [example], next_cursor: null } },
  }),
  createToken: defineRoute({
    operationId: 'createToken',
    method: 'post',
    path: '/v1/account/tokens',
    tag: 'Account tokens',
    summary: 'Make a personal token',
    description: 'The secret is shown once; repeating the request with its Idempotency-Key shows it for ten minutes.',
    policy: 'tokens.own',
    organization: 'none',
    body: createTokenBody,
    idempotency: 'required',
    success: { status: 201, description: 'The token with its secret', body: createdToken },
    errors: ['expiry_conflict', 'idempotency_secret_expired', 'quota_exceeded'],
    examples: {
      request: { name: 'laptop', ttl: '30d' },
      response: { ...example, token: 'svc_pat_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000' },
    },
  }),
  revokeToken: defineRoute({
    operationId: 'revokeToken',
    method: 'delete',
    path: '/v1/account/tokens/{token}',
    tag: 'Account tokens',
    summary: 'Revoke a token at once',
    policy: 'tokens.own',
    organization: 'none',
    params: z.strictObject({ token: tokenId }),
    idempotency: 'required',
    success: { status: 200, description: 'The token; the same again when repeated', body: tokenRecord },
    errors: ['token_not_found'],
    examples: { response: { ...example, revoked_at: 1795773700 } },
  }),
}
