/** Operations: the records that asynchronous calls answer with and that callers poll. */
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATES } from '../../lib/model/operation.ts'
import { defineRoute } from './route.ts'
import { environmentId, isoTime, operationId, organizationId, projectId } from './scalars.ts'

/** An operation. */
export const operationRecord = z
  .object({
    id: operationId,
    kind: z.enum(OPERATION_KINDS).meta({ description: 'What was asked for', example: 'create_environment' }),
    state: z
      .enum(OPERATION_STATES)
      .meta({ description: 'succeeded and failed are final: stop polling', example: 'pending' }),
    organization_id: organizationId,
    environment: z
      .object({ organization_id: organizationId, project_id: projectId, environment_id: environmentId })
      .meta({ description: 'What it is about' }),
    attempt_count: z.int().min(0).meta({ description: 'Attempts so far', example: 0 }),
    created_at: isoTime,
    updated_at: isoTime,
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'Facts about the outcome, once it succeeded', example: null }),
    error: z.string().nullable().meta({ description: 'Why it failed, for people', example: null }),
  })
  .meta({ id: 'Operation' })
export type OperationRecord = z.infer<typeof operationRecord>

/** The example that every 202 shows. */
export const operationExample = (kind: (typeof OPERATION_KINDS)[number]) => ({
  id: 'op_06dm3qz5hx7n0c8k2v4r9w1tbe',
  kind,
  state: 'pending',
  organization_id: 'acme',
  environment: { organization_id: 'acme', project_id: 'shop', environment_id: 'pr-41' },
  attempt_count: 0,
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
  result: null,
  error: null,
})

/** The success of every asynchronous call. */
export const accepted = {
  status: 202,
  description: 'Accepted: poll the operation until its state is succeeded or failed',
  body: operationRecord,
  location: '/v1/operations/{id}',
} as const

export const operationRoutes = {
  getOperation: defineRoute({
    operationId: 'getOperation',
    method: 'get',
    path: '/v1/operations/{operation}',
    tag: 'Operations',
    summary: 'Read an operation',
    description: 'Needs the header X-Service-Organization-ID. Poll every few seconds until the state is final.',
    policy: 'organization.read',
    organization: 'header',
    target: 'record',
    params: z.strictObject({ operation: operationId }),
    idempotency: 'none',
    success: { status: 200, description: 'The operation', body: operationRecord },
    errors: ['operation_not_found'],
    examples: { response: operationExample('create_environment') },
  }),
}
