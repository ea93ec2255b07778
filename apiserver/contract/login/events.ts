/** What happened around signing in: the log of the login. */
import { z } from 'zod'
import { ACCOUNT_EVENT_TYPES } from '../../../lib/model/audit.ts'
import { listAuditEventsQuery } from '../audit-events.ts'
import { defineRoute } from '../route.ts'
import { isoTime } from '../scalars.ts'

const loginEvent = z
  .object({
    id: z.int().min(1).meta({ description: 'Counts the events in the order of their commits', example: 7 }),
    type: z.enum(ACCOUNT_EVENT_TYPES).meta({ description: 'What happened', example: 'sign_in' }),
    user_id: z.string().nullable().meta({
      description: 'Whose account; null: none has the address',
      example: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
    }),
    email: z.string().nullable().meta({ description: 'The address that was given', example: 'ada@example.com' }),
    client_ip: z.string().nullable().meta({ description: 'From where', example: '203.0.113.7' }),
    user_agent: z.string().nullable().meta({ description: 'What the client called itself', example: 'curl/8.5.0' }),
    occurred_at: isoTime,
    metadata: z.record(z.string(), z.unknown()).meta({ description: 'Particulars, with request_id' }),
  })
  .meta({ id: 'LoginEvent' })

export const loginEventRoutes = {
  listLoginEvents: defineRoute({
    operationId: 'listLoginEvents',
    method: 'get',
    path: '/v1/auth/builtin/events',
    tag: 'Sign-in',
    summary: 'List what happened around signing in',
    description: 'Of all accounts, oldest first. Following next_cursor misses no event.',
    policy: 'login.administer',
    organization: 'none',
    query: listAuditEventsQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The events',
      body: z.object({
        events: z.array(loginEvent),
        next_cursor: z.int().nullable().meta({ description: 'Give it as `after` to read on; null: no more for now' }),
      }),
    },
    errors: ['forbidden'],
    examples: {
      response: {
        events: [
          {
            id: 7,
            type: 'sign_in',
            user_id: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
            email: 'ada@example.com',
            client_ip: '203.0.113.7',
            user_agent: 'curl/8.5.0',
            occurred_at: '2026-11-27T10:00:00.000Z',
            metadata: { method: 'password', request_id: '0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22' },
          },
        ],
        next_cursor: null,
      },
    },
  }),
}
