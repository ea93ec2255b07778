/** Health: for those who watch the service. */
import { z } from 'zod'
import { defineRoute } from './route.ts'

const health = z
  .object({ status: z.literal('ok').meta({ description: 'The process answers', example: 'ok' }) })
  .meta({ id: 'Health' })

const readiness = z
  .object({
    status: z.literal('ready').meta({ description: 'Requests are served', example: 'ready' }),
    checks: z
      .record(z.string(), z.literal('ok'))
      .meta({ description: 'What was looked at', example: { database: 'ok', resources: 'ok' } }),
  })
  .meta({ id: 'Readiness' })

export const healthRoutes = {
  getHealth: defineRoute({
    operationId: 'getHealth',
    method: 'get',
    path: '/healthz',
    tag: 'Health',
    summary: 'Whether the process answers',
    policy: 'public',
    organization: 'none',
    idempotency: 'none',
    success: { status: 200, description: 'It does', body: health },
    errors: [],
    examples: { response: { status: 'ok' } },
  }),
  getReadiness: defineRoute({
    operationId: 'getReadiness',
    method: 'get',
    path: '/readyz',
    tag: 'Health',
    summary: 'Whether requests can be served',
    policy: 'public',
    organization: 'none',
    idempotency: 'none',
    success: { status: 200, description: 'They can', body: readiness },
    errors: ['not_ready', 'database_unavailable'],
    examples: { response: { status: 'ready', checks: { database: 'ok', resources: 'ok' } } },
  }),
}
