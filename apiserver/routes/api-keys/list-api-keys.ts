import type { Handlers } from '../../context.ts'
import { listApiKeys as list } from '../../store/api-keys.ts'
import { apiKeyView } from '../../views/api-key-view.ts'

export const listApiKeys: Handlers['listApiKeys'] = async ({ params, query }, { database }) => {
  const page = await list(database, params.org, query)
  return { status: 200, body: { items: page.items.map(apiKeyView), next_cursor: page.nextCursor } }
}
