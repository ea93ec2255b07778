import type { Handlers } from '../../context.ts'
import { listOrganizations as list } from '../../store/organizations.ts'
import { organizationWithRoleView } from '../../views/organization-view.ts'

export const listOrganizations: Handlers['listOrganizations'] = async ({ query, call }, { database }) => {
  const { userId } = call.principal
  const page = userId === undefined ? { items: [], nextCursor: null } : await list(database, userId, query)
  const organizations = page.items.map(row => organizationWithRoleView(row, row.role))
  return { status: 200, body: { organizations, next_cursor: page.nextCursor } }
}
