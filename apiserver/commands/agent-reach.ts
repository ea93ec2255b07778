/** What an agent's token may be limited to: judged when it is made, as it will be at each of its calls. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import { parseScope } from '../../lib/model/scope.ts'
import { invalidToken } from '../auth/authenticate/bearer.ts'
import { organizationNotFound } from '../auth/authorize.ts'
import { holdSession } from '../store/login/sessions.ts'
import { holdMembership } from '../store/memberships.ts'
import type { Sql } from '../store/sql.ts'
import { holdToken } from '../store/tokens.ts'
import type { Call } from './call.ts'

/** Of an agent's token; of a personal one without scopes. */
export interface AgentReach {
  readonly scopes: readonly string[]
  /** The one organization that it is bound to. */
  readonly organizationId: string | undefined
}

/**
 * Scopes and binding that agree with each other.
 * @throws DomainError `scope_organization_required` when a scope names a project and nothing is bound,
 * `scope_organization_mismatch` when one names another organization
 */
export const agentReachOf = (
  scopes: readonly string[],
  { organization_id: organizationId }: { readonly organization_id?: string | undefined },
): AgentReach => {
  for (const text of scopes) {
    const scope = parseScope(text)
    if (scope?.projectId !== undefined && organizationId === undefined)
      throw new DomainError('scope_organization_required', `The scope ${text} needs organization_id beside it`)
    if (scope?.organizationId !== undefined && organizationId !== undefined && scope.organizationId !== organizationId)
      throw new DomainError(
        'scope_organization_mismatch',
        `The scope ${text} is not of the organization ${organizationId}`,
      )
  }
  return { scopes, organizationId }
}

/** Every organization that something names. */
export const organizationsNamed = ({ scopes, organizationId }: AgentReach): ReadonlySet<string> =>
  new Set([organizationId, ...scopes.map(text => parseScope(text)?.organizationId)].filter(id => id !== undefined))

/**
 * The user has to be a member of every organization that is named, until the token is there: of another they learn nothing.
 * @throws DomainError `organization_not_found`
 */
export const assertMember = async (sql: Sql, userId: string, reach: AgentReach): Promise<void> => {
  for (const id of organizationsNamed(reach)) if (!(await holdMembership(sql, id, userId))) throw organizationNotFound()
}

/**
 * A credential that reaches one organization is ended with others of its kind, when an identity provider goes say: it has to be in
 * force still, now that the user's row is held, which whoever ends them holds too. So none is made past that end.
 * @throws DomainError `invalid_token`
 */
export const assertInForce = async (sql: Sql, { principal }: Call): Promise<void> => {
  if (principal.boundTo === undefined) return
  const { kind, credentialId } = principal
  if (!(await (kind === 'session' ? holdSession(sql, credentialId) : holdToken(sql, credentialId))))
    throw invalidToken()
}
