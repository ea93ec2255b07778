import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { Handlers } from '../../context.ts'
import { listTokenEvents as list } from '../../store/token-events.ts'
import { findToken } from '../../store/tokens.ts'
import { tokenEventView } from '../../views/token-event-view.ts'

export const listTokenEvents: Handlers['listTokenEvents'] = async ({ params, query, call }, context) => {
  const { userId } = call.principal
  const token = userId === undefined ? undefined : await findToken(context.database, userId, params.token)
  if (token?.kind !== 'agent') throw new DomainError('token_not_found', 'You have no agent’s token with this id')
  // So that whoever called and then reads sees their call, if this replica served it.
  await context.agentRequests.flush()
  const page = await list(context.database, token.id, query)
  return { status: 200, body: { events: page.items.map(tokenEventView), next_cursor: page.nextCursor } }
}
