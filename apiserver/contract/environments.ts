/** Environments: a Postgres database each, with a life cycle. */
import { z } from 'zod'
import { DATA_MODES, ENVIRONMENT_KINDS, PHASES } from '../../lib/model/environment.ts'
import { deletionPolicy } from './deletion-policy.ts'
import { accepted, operationExample, operationRecord } from './operations.ts'
import { defineRoute } from './route.ts'
import {
  cursor,
  environmentId,
  isoTime,
  limit,
  nextCursor,
  organizationId,
  postgresMajor,
  projectId,
  region,
  ttlHours,
} from './scalars.ts'

const kind = z.enum(ENVIRONMENT_KINDS).meta({ description: 'Immutable', example: 'preview' })
const dataMode = z.enum(DATA_MODES).meta({ description: 'What a clone takes from its source', example: 'sanitized' })
const deletionProtection = z.boolean().meta({ description: 'true refuses deletion', example: false })

/** An environment. Never holds the connection string. */
export const environmentRecord = z
  .object({
    organization_id: organizationId,
    project_id: projectId,
    environment_id: environmentId,
    kind,
    data_mode: dataMode,
    region,
    phase: z.enum(PHASES).meta({ description: 'Where it stands', example: 'ready' }),
    postgres_major: z.int().meta({ description: 'Major version of Postgres', example: 17 }),
    ttl_hours: z
      .int()
      .optional()
      .meta({ description: 'Previews with an expiry: the hours asked for last', example: 24 }),
    expires_at_epoch_seconds: z
      .int()
      .optional()
      .meta({ description: 'Previews with an expiry: when it is deleted', example: 1795860000 }),
    source_environment_id: environmentId
      .nullable()
      .meta({ description: 'The environment it was cloned from', example: null }),
    deletion_protection: deletionProtection,
    deletion_policy: deletionPolicy,
    status_reason: z
      .string()
      .nullable()
      .meta({ description: 'Why it is not ready, in one word; null when there is nothing to say', example: null }),
    status_message: z.string().nullable().meta({ description: 'Why it is not ready, for people', example: null }),
    warnings: z
      .array(
        z.object({
          reason: z.string().meta({ description: 'In one word', example: 'ExpiresSoon' }),
          message: z.string().meta({ description: 'For people' }),
        }),
      )
      .meta({
        description:
          'What may become a problem, also while it is ready: ExpiresSoon, InGrace and Protected (its time is over, and it is about to be deleted, or kept by its deletion protection alone), DiskNearlyFull, NoShutdownCheckpoint (Postgres recovers at its next start)',
        example: [],
      }),
    created_at: isoTime,
    updated_at: isoTime,
  })
  .meta({ id: 'Environment' })
export type EnvironmentRecord = z.infer<typeof environmentRecord>

export const createEnvironmentBody = z.strictObject({
  organization_id: organizationId,
  project_id: projectId,
  environment_id: environmentId,
  kind,
  data_mode: dataMode.optional().meta({ description: 'Default: sanitized for previews, snapshot otherwise' }),
  region: region.optional().meta({ description: 'Default: the project’s' }),
  postgres_major: postgresMajor.optional().meta({ description: 'Default: the project’s' }),
  ttl_hours: ttlHours
    .nullable()
    .optional()
    .meta({ description: 'Previews only: hours until it is deleted. Default: the server’s' }),
  source_environment_id: environmentId
    .nullable()
    .optional()
    .meta({ description: 'What to clone. Default: the project’s production environment; null: start empty' }),
  deletion_protection: deletionProtection.optional().meta({ description: 'Default: false' }),
  deletion_policy: deletionPolicy.optional().meta({ description: 'Default: retain for production, else delete' }),
})
export type CreateEnvironmentBody = z.output<typeof createEnvironmentBody>

export const updateEnvironmentBody = z
  .strictObject({ deletion_protection: deletionProtection.optional(), deletion_policy: deletionPolicy.optional() })
  .refine(body => Object.keys(body).length > 0, { error: 'must change at least one field' })
export type UpdateEnvironmentBody = z.output<typeof updateEnvironmentBody>

export const renewEnvironmentBody = z.strictObject({ ttl_hours: ttlHours })

/** The query of the list. */
export const listEnvironmentsQuery = z.strictObject({
  organization_id: organizationId,
  project_id: projectId.optional(),
  after: cursor.optional(),
  limit: limit(200, 100),
})

/** The query of the list of operations. */
export const listOperationsQuery = z.strictObject({ after: cursor.optional(), limit: limit(200, 50) })

/** How to connect. */
export const connectionRecord = z
  .object({
    connection_uri: z.string().meta({
      description: 'A Postgres URI with the password in it',
      example: 'postgresql://app:secret@127.0.0.1:20001/app?sslmode=disable',
    }),
    ca_certificate: z
      .string()
      .optional()
      .meta({ description: 'PEM of the authority that signed the server’s certificate, where there is one' }),
    external_uri: z.string().optional().meta({ description: 'The URI from outside, where there is one' }),
  })
  .meta({ id: 'Connection' })

/** What is used of what the plan allows. */
export const usageRecord = z
  .object({
    plan: z.string().meta({ description: 'Name of the plan', example: 'self-hosted' }),
    flat_price: z.object({
      amount_cents: z.int().meta({ description: 'Price of a period', example: 0 }),
      currency: z.string().meta({ description: 'ISO 4217', example: 'EUR' }),
      interval: z.literal('month'),
    }),
    billing_period: z.object({ start: isoTime, end: isoTime }),
    caps: z.array(
      z.object({
        name: z.string().meta({ description: 'What is counted', example: 'database_bytes' }),
        unit: z.enum(['bytes', 'count']),
        limit: z.number().nullable().meta({ description: 'The cap with packs; null: none', example: null }),
        used: z
          .number()
          .nullable()
          .meta({ description: 'Current use; null: cannot be measured now', example: 7_500_000 }),
        base_limit: z.number().nullable().meta({ description: 'The plan’s cap without packs', example: null }),
      }),
    ),
    capacity_packs: z.array(
      z.object({
        name: z.string(),
        quantity: z.int(),
        adds: z.object({ cap: z.string(), amount: z.number() }),
      }),
    ),
    measured_at: isoTime,
  })
  .meta({ id: 'Usage' })
export type UsageRecord = z.infer<typeof usageRecord>

/** The path of one environment. */
export const environmentParams = z.strictObject({ org: organizationId, project: projectId, env: environmentId })
export type EnvironmentParams = z.output<typeof environmentParams>

const ONE = '/v1/organizations/{org}/projects/{project}/environments/{env}'
const NOT_FOUND = ['project_not_found', 'environment_not_found'] as const
const ONE_AT_A_TIME = ['operation_in_progress', 'invalid_phase'] as const
const example = {
  organization_id: 'acme',
  project_id: 'shop',
  environment_id: 'pr-41',
  kind: 'preview',
  data_mode: 'sanitized',
  region: 'eu-central',
  phase: 'ready',
  postgres_major: 17,
  ttl_hours: 24,
  expires_at_epoch_seconds: 1795860000,
  source_environment_id: null,
  deletion_protection: false,
  deletion_policy: 'delete',
  status_reason: null,
  status_message: null,
  warnings: [],
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
}
const one = { tag: 'Environments', organization: 'path', params: environmentParams } as const

export const environmentRoutes = {
  createEnvironment: defineRoute({
    operationId: 'createEnvironment',
    method: 'post',
    path: '/v1/environments',
    tag: 'Environments',
    summary: 'Create an environment',
    policy: 'environment.write',
    organization: 'body',
    body: createEnvironmentBody,
    idempotency: 'required',
    success: accepted,
    errors: [
      'project_not_found',
      'environment_exists',
      'environment_not_found',
      'invalid_ttl',
      'ttl_not_allowed',
      'unsupported_postgres_major',
      'data_mode_unavailable',
      'quota_exceeded',
      'operation_in_progress',
    ],
    examples: {
      request: {
        organization_id: 'acme',
        project_id: 'shop',
        environment_id: 'pr-41',
        kind: 'preview',
        ttl_hours: 24,
      },
      response: operationExample('create_environment'),
    },
  }),
  listEnvironments: defineRoute({
    operationId: 'listEnvironments',
    method: 'get',
    path: '/v1/environments',
    tag: 'Environments',
    summary: 'List the environments of an organization or project',
    policy: 'organization.read',
    organization: 'query',
    query: listEnvironmentsQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The environments, oldest first, without deleted ones',
      body: z.object({ environments: z.array(environmentRecord), next_cursor: nextCursor }),
    },
    errors: ['project_not_found'],
    examples: { response: { environments: [example], next_cursor: null } },
  }),
  getEnvironment: defineRoute({
    ...one,
    operationId: 'getEnvironment',
    method: 'get',
    path: ONE,
    summary: 'Read an environment',
    description: 'A deleted environment is answered with phase deleted until its id is used again.',
    policy: 'organization.read',
    idempotency: 'none',
    success: { status: 200, description: 'The environment', body: environmentRecord },
    errors: NOT_FOUND,
    examples: { response: example },
  }),
  updateEnvironment: defineRoute({
    ...one,
    operationId: 'updateEnvironment',
    method: 'patch',
    path: ONE,
    summary: 'Change deletion protection or deletion policy',
    description: 'From the answer on it holds for the expiry sweep too. On production only an admin may.',
    policy: 'environment.write',
    body: updateEnvironmentBody,
    idempotency: 'required',
    success: { status: 200, description: 'The environment', body: environmentRecord },
    errors: [...NOT_FOUND, ...ONE_AT_A_TIME, 'store_unavailable'],
    examples: { request: { deletion_protection: true }, response: { ...example, deletion_protection: true } },
  }),
  suspendEnvironment: defineRoute({
    ...one,
    operationId: 'suspendEnvironment',
    method: 'post',
    path: `${ONE}/suspend`,
    summary: 'Suspend an environment: Postgres stops, the data stays',
    policy: 'environment.write',
    idempotency: 'required',
    success: accepted,
    errors: [...NOT_FOUND, ...ONE_AT_A_TIME],
    examples: { response: operationExample('suspend_environment') },
  }),
  resumeEnvironment: defineRoute({
    ...one,
    operationId: 'resumeEnvironment',
    method: 'post',
    path: `${ONE}/resume`,
    summary: 'Resume a suspended environment, or retry a failed one at once',
    policy: 'environment.write',
    idempotency: 'required',
    success: accepted,
    errors: [...NOT_FOUND, ...ONE_AT_A_TIME],
    examples: { response: operationExample('resume_environment') },
  }),
  rotateCredentials: defineRoute({
    ...one,
    operationId: 'rotateCredentials',
    method: 'post',
    path: `${ONE}/rotate-credentials`,
    summary: 'Replace the passwords of an environment',
    description:
      'A sign-in with the new ones is proven before `connection` answers them; from then on the old ones are refused. Sessions that are open stay.',
    policy: 'environment.write',
    idempotency: 'required',
    success: accepted,
    errors: [...NOT_FOUND, ...ONE_AT_A_TIME],
    examples: { response: operationExample('rotate_credentials') },
  }),
  deleteEnvironment: defineRoute({
    ...one,
    operationId: 'deleteEnvironment',
    method: 'delete',
    path: ONE,
    summary: 'Delete an environment for good',
    description: 'Takes the place of an operation under way, which ends as failed.',
    policy: 'environment.write',
    idempotency: 'required',
    success: accepted,
    errors: [...NOT_FOUND, ...ONE_AT_A_TIME, 'deletion_protected'],
    examples: { response: operationExample('delete_environment') },
  }),
  renewEnvironment: defineRoute({
    ...one,
    operationId: 'renewEnvironment',
    method: 'post',
    path: `${ONE}/renew`,
    summary: 'Let a preview live for some hours from now',
    description: 'One whose time is over can be renewed only while its deletion protection keeps it.',
    policy: 'environment.write',
    body: renewEnvironmentBody,
    idempotency: 'optional',
    success: { status: 200, description: 'The environment with its new expiry', body: environmentRecord },
    errors: [
      ...NOT_FOUND,
      ...ONE_AT_A_TIME,
      'invalid_ttl',
      'not_a_preview',
      'environment_expired',
      'store_unavailable',
    ],
    examples: { request: { ttl_hours: 24 }, response: example },
  }),
  listOperations: defineRoute({
    ...one,
    operationId: 'listOperations',
    method: 'get',
    path: `${ONE}/operations`,
    summary: 'List the operations of an environment',
    description:
      'Newest first: what was asked for, and deletions by expiry or from outside. An id that was used again lists its former lives too.',
    policy: 'organization.read',
    query: listOperationsQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The operations, newest first',
      body: z.object({ operations: z.array(operationRecord), next_cursor: nextCursor }),
    },
    errors: NOT_FOUND,
    examples: { response: { operations: [operationExample('create_environment')], next_cursor: null } },
  }),
  getConnection: defineRoute({
    ...one,
    operationId: 'getConnection',
    method: 'get',
    path: `${ONE}/connection`,
    summary: 'Read how to connect to the database',
    description:
      'Server-to-server only: refused with an Origin, Sec-Fetch-Site or Cookie header. Every read leaves an audit event.',
    policy: 'connection.read',
    serverToServer: true,
    rate: 'connection',
    idempotency: 'none',
    success: { status: 200, description: 'A URI that works', body: connectionRecord },
    errors: [...NOT_FOUND, 'invalid_phase', 'server_to_server_only', 'store_unavailable'],
    examples: { response: { connection_uri: 'postgresql://app:secret@127.0.0.1:20001/app?sslmode=disable' } },
  }),
  getUsage: defineRoute({
    ...one,
    operationId: 'getUsage',
    method: 'get',
    path: `${ONE}/usage`,
    summary: 'Read what the environment uses of its plan',
    policy: 'organization.read',
    idempotency: 'none',
    success: { status: 200, description: 'The usage', body: usageRecord },
    errors: [...NOT_FOUND, 'store_unavailable'],
    examples: {
      response: {
        plan: 'self-hosted',
        flat_price: { amount_cents: 0, currency: 'EUR', interval: 'month' },
        billing_period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
        caps: [{ name: 'database_bytes', unit: 'bytes', limit: null, used: 7_500_000, base_limit: null }],
        capacity_packs: [],
        measured_at: '2026-11-27T10:00:00.000Z',
      },
    },
  }),
}
