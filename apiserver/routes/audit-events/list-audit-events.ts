import type { Handlers } from '../../context.ts'
import { listAuditEvents as list } from '../../store/audit.ts'
import { auditEventView } from '../../views/audit-event-view.ts'

export const listAuditEvents: Handlers['listAuditEvents'] = async ({ params, query }, { database }) => {
  const page = await list(database, params.org, query.after, query.limit)
  return { status: 200, body: { events: page.items.map(auditEventView), next_cursor: page.nextCursor } }
}
