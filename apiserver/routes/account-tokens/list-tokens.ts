import type { Handlers } from '../../context.ts'
import { listTokens as list } from '../../store/tokens.ts'
import { tokenView } from '../../views/token-view.ts'

export const listTokens: Handlers['listTokens'] = async ({ query, call }, { database }) => {
  const { userId } = call.principal
  const page = userId === undefined ? { items: [], nextCursor: null } : await list(database, userId, query)
  return { status: 200, body: { tokens: page.items.map(tokenView), next_cursor: page.nextCursor } }
}
