/** Says yes or no to a caller, from a row of the policy table. A stranger learns nothing: 404, never 403, across tenants. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import { type Role, roleAtLeast } from '../../lib/model/credential.ts'
import type { EnvironmentKind } from '../../lib/model/environment.ts'
import type { Principal } from '../commands/call.ts'
import type { PolicyRow } from './policy.ts'

const tooLow = (role: Role | undefined, required: Role): DomainError =>
  new DomainError('forbidden', `This needs the role ${required}, yours is ${role ?? 'none'}`, {
    details: { required_role: required },
  })

/** What a caller gets who is no member, whether the organization is there or not. */
export const organizationNotFound = (): DomainError =>
  new DomainError('organization_not_found', 'There is no such organization, or you are no member of it')

const isAboutSelf = (principal: Principal, subject: string | undefined): boolean =>
  subject !== undefined && (subject === principal.subject || subject === principal.userId)

/**
 * Lets a call pass or throws. `subject` is the member that the path names, where it names one.
 * @throws DomainError `credential_not_allowed`, `organization_not_found`, `forbidden`
 */
export const authorize = (principal: Principal, row: PolicyRow, subject?: string): void => {
  if (!row.credentials.includes(principal.kind))
    throw new DomainError('credential_not_allowed', `This kind of credential may not make this call: ${principal.kind}`)
  if (row.role === 'self' || row.role === 'public') return
  if (principal.role === undefined) {
    if (row.mayCreate === true) return
    throw organizationNotFound()
  }
  if (roleAtLeast(principal.role, row.role)) return
  if (row.orSelf === true && isAboutSelf(principal, subject)) return
  throw tooLow(principal.role, row.role)
}

/**
 * For what touches an environment: production of a protected project needs an admin.
 * @throws DomainError `forbidden`
 */
export const authorizeProduction = (
  principal: Principal,
  environment: { readonly kind: EnvironmentKind; readonly protectProduction: boolean },
): void => {
  if (environment.kind !== 'production' || !environment.protectProduction) return
  requireRole(principal, 'admin')
}

/** For rules that a command alone can judge. @throws DomainError `forbidden` */
export const requireRole = (principal: Principal, required: Role): void => {
  if (principal.role === undefined || !roleAtLeast(principal.role, required)) throw tooLow(principal.role, required)
}
