import type { Handlers } from '../../context.ts'
import { verifyChain } from '../../store/audit-chain.ts'

export const verifyAuditEvents: Handlers['verifyAuditEvents'] = async ({ params }, { database }) => {
  const { events, head, broken } = await verifyChain(database, params.org)
  return {
    status: 200,
    body: {
      organization_id: params.org,
      verified: broken === undefined,
      events,
      head: head ?? null,
      broken: broken ?? null,
    },
  }
}
