/** API keys of an organization: credentials that belong to no person. */
import { z } from 'zod'
import { LEVELS } from '../../lib/model/scope.ts'
import { organizationParams } from './organizations.ts'
import { defineRoute } from './route.ts'
import { apiKeyId, epochSeconds, nextCursor, organizationId, pageQuery, text } from './scalars.ts'

const name = text(1, 120).meta({ description: 'What the key is for', example: 'ci' })
const level = z.enum(LEVELS)

/** A key, without its secret. */
export const apiKeyRecord = z
  .object({
    api_key_id: apiKeyId,
    organization_id: organizationId,
    name,
    scopes: z.array(level).meta({ description: 'What it may do in its organization', example: ['deploy'] }),
    key_prefix: z.string().meta({ description: 'The first characters of the key', example: 'svck_3fK9xQ2m' }),
    created_by: z.string().meta({ description: 'Who made it', example: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
    created_at_epoch_seconds: epochSeconds,
    last_used_epoch_seconds: epochSeconds
      .nullable()
      .meta({ description: 'Epoch seconds, late by up to a minute', example: null }),
    revoked_at_epoch_seconds: epochSeconds
      .nullable()
      .meta({ description: 'Epoch seconds; null: active', example: null }),
  })
  .meta({ id: 'ApiKey' })
export type ApiKeyRecord = z.infer<typeof apiKeyRecord>

/** A key just made, with its secret. */
export const createdApiKey = apiKeyRecord
  .extend({
    secret: z.string().meta({
      description: 'The key: shown this once',
      example: 'svck_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000',
    }),
  })
  .meta({ id: 'CreatedApiKey' })
export type CreatedApiKey = z.infer<typeof createdApiKey>

export const createApiKeyBody = z.strictObject({
  name,
  scopes: z
    .array(level)
    .min(1)
    .refine(scopes => new Set(scopes).size === scopes.length, { error: 'must not hold a level twice' })
    .meta({ description: 'What it may do: read, deploy, admin; each includes the ones before', example: ['deploy'] }),
})
export type CreateApiKeyBody = z.output<typeof createApiKeyBody>

const example = {
  api_key_id: 'key_06dm3qz5hx7n0c8k2v4r9w1tbe',
  organization_id: 'acme',
  name: 'ci',
  scopes: ['deploy' as const],
  key_prefix: 'svck_3fK9xQ2m',
  created_by: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
  created_at_epoch_seconds: 1795773600,
  last_used_epoch_seconds: null,
  revoked_at_epoch_seconds: null,
}

export const apiKeyRoutes = {
  listApiKeys: defineRoute({
    operationId: 'listApiKeys',
    method: 'get',
    path: '/v1/organizations/{org}/api-keys',
    tag: 'API keys',
    summary: 'List an organization’s API keys',
    description: 'Those that work, oldest first.',
    policy: 'api-keys.read',
    organization: 'path',
    params: organizationParams,
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The keys, without their secrets',
      body: z.object({ items: z.array(apiKeyRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { items: [example], next_cursor: null } },
  }),
  createApiKey: defineRoute({
    operationId: 'createApiKey',
    method: 'post',
    path: '/v1/organizations/{org}/api-keys',
    tag: 'API keys',
    summary: 'Make an API key',
    description:
      'It belongs to the organization and outlives whoever made it. The secret is shown once; repeating the request with its Idempotency-Key shows it for ten minutes.',
    policy: 'api-keys.write',
    organization: 'path',
    params: organizationParams,
    body: createApiKeyBody,
    idempotency: 'optional',
    success: { status: 201, description: 'The key with its secret', body: createdApiKey },
    errors: ['idempotency_secret_expired', 'quota_exceeded'],
    examples: {
      request: { name: 'ci', scopes: ['deploy'] },
      response: { ...example, secret: 'svck_3fK9xQ2mWc7Rt1Zb8Nv5Hj0Ls6Dg4Pe2Ya9Uq3Xi7Ok1Mf000000' },
    },
  }),
  revokeApiKey: defineRoute({
    operationId: 'revokeApiKey',
    method: 'delete',
    path: '/v1/organizations/{org}/api-keys/{api_key}',
    tag: 'API keys',
    summary: 'Revoke an API key at once',
    policy: 'api-keys.write',
    organization: 'path',
    params: organizationParams.extend({ api_key: apiKeyId }),
    idempotency: 'required',
    success: { status: 200, description: 'The key; the same again when repeated', body: apiKeyRecord },
    errors: ['api_key_not_found'],
    examples: { response: { ...example, revoked_at_epoch_seconds: 1795773700 } },
  }),
}
