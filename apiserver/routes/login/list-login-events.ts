import type { Handlers } from '../../context.ts'
import { listAccountEvents } from '../../store/audit.ts'

export const listLoginEvents: Handlers['listLoginEvents'] = async ({ query }, { login }) => {
  const page = await listAccountEvents(login.database, query.after, query.limit)
  const events = page.items.map(({ occurredAt, userId, clientIp, userAgent, ...event }) => ({
    ...event,
    user_id: userId,
    client_ip: clientIp,
    user_agent: userAgent,
    occurred_at: occurredAt.toISOString(),
  }))
  return { status: 200, body: { events, next_cursor: page.nextCursor } }
}
