import type { Handlers } from '../../context.ts'
import { listMembers as list } from '../../store/memberships.ts'
import { memberView } from '../../views/member-view.ts'

export const listMembers: Handlers['listMembers'] = async ({ params, query }, { database }) => {
  const page = await list(database, params.org, query)
  return { status: 200, body: { members: page.items.map(memberView), next_cursor: page.nextCursor } }
}
