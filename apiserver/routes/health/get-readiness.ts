import type { Handlers } from '../../context.ts'
import { readiness } from '../../http/readiness.ts'

export const getReadiness: Handlers['getReadiness'] = async (_input, context) => ({
  status: 200,
  body: { status: 'ready', checks: { ...(await readiness(context.readiness, context.stopping())) } },
})
