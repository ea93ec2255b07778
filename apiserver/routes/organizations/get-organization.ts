import { organizationNotFound } from '../../auth/authorize.ts'
import type { Handlers } from '../../context.ts'
import { findOrganization } from '../../store/organizations.ts'
import { organizationWithRoleView } from '../../views/organization-view.ts'

export const getOrganization: Handlers['getOrganization'] = async ({ params, call }, { database }) => {
  const { role } = call.principal
  const row = await findOrganization(database, params.org)
  if (row === undefined || role === undefined) throw organizationNotFound()
  return { status: 200, body: organizationWithRoleView(row, role) }
}
