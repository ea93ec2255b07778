import { organizationsOf, roleOfLevel } from '../../../lib/model/scope.ts'
import type { Handlers } from '../../context.ts'
import { findOrganization, listOrganizations as list } from '../../store/organizations.ts'
import { organizationWithRoleView } from '../../views/organization-view.ts'

export const listOrganizations: Handlers['listOrganizations'] = async ({ query, call }, { database }) => {
  const { userId, scopes, boundTo } = call.principal
  const only = boundTo !== undefined ? [boundTo] : scopes === undefined ? undefined : organizationsOf(scopes)
  if (userId !== undefined) {
    const page = await list(database, userId, only, query)
    const organizations = page.items.map(row => organizationWithRoleView(row, row.role))
    return { status: 200, body: { organizations, next_cursor: page.nextCursor } }
  }
  // A key: its own organization, and how far it reaches there.
  const own = only?.[0] === undefined ? undefined : await findOrganization(database, only[0])
  const level = scopes?.at(-1)?.level
  const organizations =
    own === undefined || level === undefined ? [] : [organizationWithRoleView(own, roleOfLevel(level))]
  return { status: 200, body: { organizations, next_cursor: null } }
}
