/** Account tokens: the caller’s own, personal and for coding agents. */
import { z } from 'zod'
import { parseScope } from '../../lib/model/scope.ts'
import { defineRoute } from './route.ts'
import { epochSeconds, nextCursor, organizationId, pageQuery, text, tokenId, withCode } from './scalars.ts'

/** The lifetimes that `ttl` names. */
export const TOKEN_TTLS = ['30m', '1h', '24h', '7d', '30d', 'never'] as const
export type TokenTtl = (typeof TOKEN_TTLS)[number]

const MAX_SCOPES = 32
const MAX_SCOPE_LENGTH = 220

const name = text(1, 200).meta({ description: 'What the token is for', example: 'laptop' })

/** A token, without its secret. */
export const tokenRecord = z
  .object({
    id: tokenId,
    name,
    token_prefix: z.string().meta({ description: 'The first characters of the token', example: 'svc_pat_3fK9xQ2m' }),
    kind: z.enum(['personal', 'agent']).meta({ description: 'What kind of token', example: 'personal' }),
    scopes: z.array(z.string()).meta({ description: 'Agent tokens: what it is limited to; else empty', example: [] }),
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
    agent_message: z.string().optional().meta({
      description: 'Agent tokens: a text to hand to a coding agent, with the token, what it may and how to end it',
    }),
    revoke_url: z.url().optional().meta({
      description: 'Agent tokens: what to DELETE, with the token itself or another credential of yours, to end it',
      example: 'https://db.example.com/v1/account/tokens/tok_06dm3qz5hx7n0c8k2v4r9w1tbe',
    }),
  })
  .meta({ id: 'CreatedToken' })
export type CreatedToken = z.infer<typeof createdToken>

const scope = z
  .string()
  .max(MAX_SCOPE_LENGTH)
  .refine(value => parseScope(value) !== undefined, {
    error:
      'must be read, deploy or admin, alone or behind org:ORG:, project:ORG/PROJECT: or env:ORG/PROJECT/ENVIRONMENT:',
    params: { reason: 'invalid_scope' },
  })

/** What an agent's token is limited to. */
export const scopeList = z
  .array(scope)
  .min(1)
  .max(MAX_SCOPES)
  .refine(scopes => new Set(scopes).size === scopes.length, { error: 'must not hold a scope twice' })

export const createTokenBody = z
  .strictObject({
    name,
    expires_in_days: z.int().min(1).max(3650).optional().meta({ description: 'Days to live', example: 30 }),
    ttl: z.enum(TOKEN_TTLS).optional().meta({
      description:
        'Time to live, instead of expires_in_days. Without either a personal token does not expire, an agent’s after 8 hours',
    }),
    scopes: scopeList.optional().meta({
      description:
        'Makes it an agent’s token, which may do what these scopes and the role of its user both allow: `read`, `deploy` or `admin`, alone or as `org:ORG:read`, `project:ORG/PROJECT:deploy`, `env:ORG/PROJECT/ENVIRONMENT:admin`',
      example: ['project:acme/shop:deploy'],
    }),
    organization_id: organizationId.optional().meta({
      description: 'Binds an agent’s token to one organization; required when a scope names a project',
      example: 'acme',
    }),
  })
  .refine(body => body.organization_id === undefined || body.scopes !== undefined, {
    error: 'must come with scopes: only an agent’s token is bound to an organization',
    path: ['organization_id'],
  })
  .refine(
    body => body.ttl === undefined || body.expires_in_days === undefined,
    withCode('expiry_conflict', 'must hold ttl or expires_in_days, not both'),
  )
export type CreateTokenBody = z.output<typeof createTokenBody>

/** One request that an agent's token made. */
export const tokenEventRecord = z
  .object({
    method: z.string().meta({ description: 'HTTP method', example: 'POST' }),
    path: z.string().meta({
      description: 'Path, without its query; a user code in it is left out: {user_code}',
      example: '/v1/environments',
    }),
    status: z.int().meta({ description: 'What it was answered; 499: it went away before', example: 202 }),
    client_ip: z.string().meta({ description: 'From where', example: '203.0.113.7' }),
    at: epochSeconds,
  })
  .meta({ id: 'TokenEvent' })
export type TokenEventRecord = z.infer<typeof tokenEventRecord>

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
    description: 'Newest first; those that were revoked or expired stay for 30 days.',
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
    summary: 'Make a token for yourself or, with scopes, for a coding agent',
    description: 'The secret is shown once; repeating the request with its Idempotency-Key shows it for ten minutes.',
    policy: 'tokens.own',
    organization: 'none',
    body: createTokenBody,
    idempotency: 'required',
    success: { status: 201, description: 'The token with its secret', body: createdToken },
    errors: [
      'expiry_conflict',
      'scope_organization_required',
      'scope_organization_mismatch',
      'organization_not_found',
      'idempotency_secret_expired',
      'quota_exceeded',
    ],
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
    description: 'An agent’s token may revoke itself, and no other.',
    policy: 'token.revoke',
    organization: 'none',
    params: z.strictObject({ token: tokenId }),
    idempotency: 'required',
    success: { status: 200, description: 'The token; the same again when repeated', body: tokenRecord },
    errors: ['token_not_found'],
    examples: { response: { ...example, revoked_at: 1795773700 } },
  }),
  listTokenEvents: defineRoute({
    operationId: 'listTokenEvents',
    method: 'get',
    path: '/v1/account/tokens/{token}/events',
    tag: 'Account tokens',
    summary: 'List the last requests of an agent’s token',
    description: 'Newest first, the last 200, whatever they were answered. A revoked token’s stay as long as it does.',
    policy: 'tokens.own',
    organization: 'none',
    params: z.strictObject({ token: tokenId }),
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The requests',
      body: z.object({ events: z.array(tokenEventRecord), next_cursor: nextCursor }),
    },
    errors: ['token_not_found'],
    examples: {
      response: {
        events: [
          {
            method: 'POST',
            path: '/v1/environments',
            status: 202,
            client_ip: '203.0.113.7',
            at: 1795773600,
          },
        ],
        next_cursor: null,
      },
    },
  }),
}
