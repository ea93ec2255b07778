import { DomainError } from '../../lib/errors/domain-error.ts'
import { organizationNotFound, requireRole } from '../auth/authorize.ts'
import type { OrganizationRecord } from '../contract/organizations.ts'
import { putMembership } from '../store/memberships.ts'
import { insertOrganization, renameOrganization } from '../store/organizations.ts'
import { organizationView } from '../views/organization-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

export interface PutOrganizationInput {
  readonly organizationId: string
  readonly name: string
}

/**
 * Creates an organization, its creator becoming owner, or renames it.
 * @throws DomainError `forbidden` for those who may not create (whether the id is taken or not, so that they learn
 * nothing), `organization_not_found` for a taken id whose organization the caller is no member of
 */
export const putOrganization = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, name }: PutOrganizationInput,
): Promise<Reply<200, OrganizationRecord>> =>
  execute(deps, call, async sql => {
    const { principal } = call
    const event = callEvent(
      call,
      'put_organization',
      { organizationId, resourceKind: 'organization', resourceId: organizationId },
      { name },
    )
    if (principal.role !== undefined) {
      requireRole(call, 'admin')
      const renamed = await renameOrganization(sql, organizationId, name)
      if (renamed === undefined) throw organizationNotFound()
      return { status: 200, body: organizationView(renamed), audit: [event] }
    }
    if (principal.userId === undefined || !(principal.isOperator || deps.settings.publicSignup))
      throw new DomainError('forbidden', 'Only operators may create organizations here')
    const created = await insertOrganization(sql, organizationId, name)
    if (created === undefined) throw organizationNotFound()
    await putMembership(sql, organizationId, principal.userId, 'owner')
    return { status: 200, body: organizationView(created), audit: [event] }
  })
