/** Says yes or no to a caller, from a row of the policy table. A stranger learns nothing: 404, never 403, across tenants. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import { type Role, roleAtLeast } from '../../lib/model/credential.ts'
import type { EnvironmentKind } from '../../lib/model/environment.ts'
import { isWithin, levelOfRole, roleOfLevel, type Scope, scopeText, type Target } from '../../lib/model/scope.ts'
import type { Principal } from '../commands/call.ts'
import type { PolicyRow } from './policy.ts'

const tooLow = (role: Role | undefined, required: Role): DomainError =>
  new DomainError('forbidden', `This needs the role ${required}, yours is ${role ?? 'none'}`, {
    details: { required_role: required },
  })

/** The credential is limited to less than this; says the scope that would do, or that none does. */
const tooNarrow = (target: Target | undefined, required: Role): DomainError => {
  const level = levelOfRole(required)
  const missing = level === undefined || target === undefined ? [] : [scopeText(target, level)]
  const wanted = missing.length === 0 ? 'which no scope gives' : `which the scope ${missing.join()} would give`
  return new DomainError(
    'insufficient_scope',
    `This credential’s scopes do not reach the role ${required} here, ${wanted}`,
    {
      details: { required_role: required, missing_permissions: missing },
    },
  )
}

/** What a caller gets who is no member, whether the organization is there or not. */
export const organizationNotFound = (): DomainError =>
  new DomainError('organization_not_found', 'There is no such organization, or you are no member of it')

const isAboutSelf = (principal: Principal, subject: string | undefined): boolean =>
  subject !== undefined && (subject === principal.subject || subject === principal.userId)

const scopesReach = (scopes: readonly Scope[], target: Target, required: Role): boolean =>
  scopes.some(scope => isWithin(target, scope) && roleAtLeast(roleOfLevel(scope.level), required))

/**
 * For rules that a command alone can judge: the role, and where the credential is limited its scopes on what the call is
 * about. Effective is what both allow: a scope never widens a role.
 * @throws DomainError `forbidden`, `insufficient_scope`
 */
export const requireRole = (
  { principal, target }: { readonly principal: Principal; readonly target?: Target | undefined },
  required: Role,
): void => {
  const { role, scopes } = principal
  if (role === undefined || !roleAtLeast(role, required)) throw tooLow(role, required)
  if (scopes === undefined) return
  if (target === undefined || !scopesReach(scopes, target, required)) throw tooNarrow(target, required)
}

/** What the policy is asked about beside the row. */
export interface Asked {
  /** The narrowest thing that the request names. `in a record`: its handler reads it, and judges scopes by `requireRole`. */
  readonly target: Target | 'in a record' | undefined
  /** The member that the path names, where it names one. */
  readonly subject?: string | undefined
}

/**
 * Lets a call pass or throws.
 * @throws DomainError `credential_not_allowed`, `organization_not_found`, `forbidden`, `insufficient_scope`
 */
export const authorize = (principal: Principal, row: PolicyRow, { target, subject }: Asked): void => {
  if (!row.credentials.includes(principal.kind))
    throw new DomainError('credential_not_allowed', `This kind of credential may not make this call: ${principal.kind}`)
  if (row.ownFactors === true && principal.boundTo !== undefined)
    throw new DomainError(
      'credential_not_allowed',
      'An account of single sign-on has no password and no second factor here',
    )
  if (row.role === 'self' || row.role === 'public') return
  if (row.role === 'operator') {
    if (principal.isOperator) return
    throw new DomainError('forbidden', 'Only an operator of this service may make this call')
  }
  if (principal.role === undefined) {
    // What reaches one organization makes no other.
    if (row.mayCreate === true && principal.boundTo === undefined) return
    throw organizationNotFound()
  }
  if (row.orSelf === true && isAboutSelf(principal, subject)) return
  if (target === 'in a record') requireRole({ principal: { ...principal, scopes: undefined } }, row.role)
  else requireRole({ principal, target }, row.role)
}

/**
 * For what touches an environment: production of a protected project needs an admin.
 * @throws DomainError `forbidden`, `insufficient_scope`
 */
export const authorizeProduction = (
  call: { readonly principal: Principal; readonly target?: Target | undefined },
  environment: { readonly kind: EnvironmentKind; readonly protectProduction: boolean },
): void => {
  if (environment.kind !== 'production' || !environment.protectProduction) return
  requireRole(call, 'admin')
}
