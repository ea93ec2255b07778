/** Audit events: what was done to an organization, append-only. */
import { z } from 'zod'
import { AUDIT_ACTIONS } from '../../lib/model/audit.ts'
import { organizationParams } from './organizations.ts'
import { defineRoute } from './route.ts'
import { isoTime, limit, organizationId, queryInteger } from './scalars.ts'

/** An audit event. */
export const auditEventRecord = z
  .object({
    id: z
      .int()
      .min(1)
      .meta({ description: 'Counts the organization’s events in the order of their commits', example: 7 }),
    organization_id: organizationId,
    actor: z.string().meta({
      description: 'Who: user:<id>, apikey:<id>, system:ttl, kubernetes:<manager>',
      example: 'user:usr_06dm3qz5hx',
    }),
    action: z.enum(AUDIT_ACTIONS).meta({ description: 'What was done', example: 'create_environment' }),
    resource_kind: z.string().meta({ description: 'What it was done to', example: 'environment' }),
    resource_id: z.string().meta({ description: 'Which one', example: 'shop/pr-41' }),
    occurred_at: isoTime,
    metadata: z.record(z.string(), z.unknown()).meta({
      description: 'Key parameters of the call, with credential_kind, credential_id, request_id and client_ip',
    }),
  })
  .meta({ id: 'AuditEvent' })
export type AuditEventRecord = z.infer<typeof auditEventRecord>

/** The query of the list. */
export const listAuditEventsQuery = z.strictObject({
  after: queryInteger(0, 10 ** 15 - 1)
    .default(0)
    .meta({
      description: 'Answer events with a higher id',
      override: { type: 'integer', minimum: 0, default: 0 },
    }),
  limit: limit(200, 50),
})

export const auditEventRoutes = {
  listAuditEvents: defineRoute({
    operationId: 'listAuditEvents',
    method: 'get',
    path: '/v1/organizations/{org}/audit-events',
    tag: 'Audit events',
    summary: 'List the audit events of an organization',
    description: 'Oldest first. Following next_cursor misses no event, also under concurrent writers.',
    policy: 'audit.read',
    organization: 'path',
    params: organizationParams,
    query: listAuditEventsQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The events',
      body: z.object({
        events: z.array(auditEventRecord),
        next_cursor: z
          .int()
          .nullable()
          .meta({ description: 'Give it as `after` to read on; null: there is no more for now', example: null }),
      }),
    },
    errors: [],
    examples: {
      response: {
        events: [
          {
            id: 7,
            organization_id: 'acme',
            actor: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
            action: 'create_environment',
            resource_kind: 'environment',
            resource_id: 'shop/pr-41',
            occurred_at: '2026-11-27T10:00:00.000Z',
            metadata: { kind: 'preview', request_id: '0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22' },
          },
        ],
        next_cursor: null,
      },
    },
  }),
  verifyAuditEvents: defineRoute({
    operationId: 'verifyAuditEvents',
    method: 'get',
    path: '/v1/organizations/{org}/audit-events/verify',
    tag: 'Audit events',
    summary: 'Check that the audit events are as they were written',
    description:
      'Each event carries a hash over itself and the one before. Names the first event that was changed, moved or removed. Note the head elsewhere: it vouches for everything up to it, also against whoever can write to the database. Reads all of them each time, so an organization may ask six times a minute, unless the service is set otherwise; then 429 says for how long to wait.',
    policy: 'audit.read',
    rate: 'verification',
    organization: 'path',
    params: organizationParams,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'What was found',
      body: z
        .object({
          organization_id: organizationId,
          verified: z.boolean().meta({ description: 'Everything is as it was written', example: true }),
          events: z.int().min(0).meta({ description: 'Events found sound, from the first on', example: 7 }),
          head: z
            .object({
              id: z.int().min(1).meta({ description: 'The last event', example: 7 }),
              hash: z.string().meta({ description: 'Its hash: SHA-256 in hex', example: 'a'.repeat(64) }),
            })
            .nullable()
            .meta({ description: 'null: there is no event yet' }),
          broken: z
            .object({
              id: z.int().min(1).meta({ description: 'The first event that is not as it was written', example: 3 }),
              problem: z
                .enum(['changed', 'missing'])
                .meta({ description: 'What is wrong with it', example: 'changed' }),
            })
            .nullable()
            .meta({ description: 'null: none is' }),
        })
        .meta({ id: 'AuditVerdict' }),
    },
    errors: [],
    examples: {
      response: {
        organization_id: 'acme',
        verified: true,
        events: 7,
        head: { id: 7, hash: 'a'.repeat(64) },
        broken: null,
      },
    },
  }),
}
