/**
 * THE policy table: who may call what. Each route of the contract names a row; building the router fails where there is none.
 * Nothing else in the API server decides by role, but for the rules that need a row of the database to be judged
 * (production of a protected project, owners among members), which `authorize.ts` offers to commands as functions.
 */
import type { CredentialKind, Role } from '../../lib/model/credential.ts'
import type { Routes } from '../contract/routes.ts'

export interface PolicyRow {
  /**
   * The lowest role in the organization that the route names. `self`: the call is about the caller alone.
   * `public`: nobody is asked. `operator`: whoever runs this service, whatever they are in organizations.
   */
  readonly role: Role | 'self' | 'public' | 'operator'
  /** Kinds that may call it; of a public route: that are looked at when one is sent. Keys and agents' tokens need a level too that reaches the role: see `lib/model/scope.ts`. */
  readonly credentials: readonly CredentialKind[]
  /** Production of a project with `protect_production` needs an admin. */
  readonly production?: 'when-protected'
  /** A caller who is no member comes through: the command decides whether they may create what is not there. */
  readonly mayCreate?: true
  /** Any member may do it to themself. */
  readonly orSelf?: true
  /** About what an account signs in with itself: none for single sign-on, where the organization’s provider sees to that. */
  readonly ownFactors?: true
}

/** The names of the rows, as the contract uses them. */
type PolicyGroup = Routes[keyof Routes]['policy']

const EVERY_KIND = ['personal', 'agent', 'api_key', 'session', 'oidc'] as const
const PEOPLE = ['personal', 'session', 'oidc'] as const

export const POLICY: Readonly<Record<PolicyGroup, PolicyRow>> = {
  public: { role: 'public', credentials: [] },
  // Whoever has no account has no session; who has one shows it.
  'public.or-session': { role: 'public', credentials: ['session'] },
  'tokens.own': { role: 'self', credentials: PEOPLE },
  // An agent's token may end itself; the command sees to it that it ends no other.
  'token.revoke': { role: 'self', credentials: [...PEOPLE, 'agent'] },
  // The login is for people: no token of any kind gets there.
  'session.own': { role: 'self', credentials: ['session'] },
  'factors.own': { role: 'self', credentials: ['session'], ownFactors: true },
  // Whoever is at the browser, and signed in there: an agent's token must not make another.
  'device.decide': { role: 'self', credentials: ['session'] },
  'login.administer': { role: 'operator', credentials: ['session', 'oidc'] },
  'organizations.list': { role: 'self', credentials: EVERY_KIND },
  'organization.read': { role: 'viewer', credentials: EVERY_KIND },
  'organization.put': { role: 'admin', credentials: PEOPLE, mayCreate: true },
  'member.write': { role: 'admin', credentials: PEOPLE },
  'member.remove': { role: 'admin', credentials: PEOPLE, orSelf: true },
  'sso.read': { role: 'admin', credentials: PEOPLE },
  'sso.write': { role: 'admin', credentials: PEOPLE },
  'invitation.write': { role: 'admin', credentials: PEOPLE },
  'api-keys.read': { role: 'admin', credentials: [...PEOPLE, 'api_key'] },
  'api-keys.write': { role: 'admin', credentials: PEOPLE },
  'project.write': { role: 'developer', credentials: EVERY_KIND },
  'project.delete': { role: 'admin', credentials: EVERY_KIND },
  'environment.write': { role: 'developer', credentials: EVERY_KIND, production: 'when-protected' },
  'connection.read': { role: 'developer', credentials: EVERY_KIND, production: 'when-protected' },
  'audit.read': { role: 'admin', credentials: EVERY_KIND },
}

/** The row of a route. @throws Error when it has none: a mistake that must not reach a request */
export const policyRowOf = (
  route: { readonly operationId: string; readonly policy: string },
  table: Readonly<Record<string, PolicyRow>> = POLICY,
): PolicyRow => {
  const row = Object.hasOwn(table, route.policy) ? table[route.policy] : undefined
  if (row === undefined)
    throw new Error(
      `Cannot build the router: route ${route.operationId} names no row of the policy table: "${route.policy}"`,
    )
  return row
}

/** Who may call a route, in a sentence for the document. */
export const accessSentence = (route: {
  readonly operationId: string
  readonly policy: string
}): string | undefined => {
  const { role, production, orSelf, credentials } = policyRowOf(route)
  if (role === 'public')
    return credentials.length === 0 ? undefined : 'Takes a session where the caller has one: needs no role.'
  if (role === 'self') return 'About the caller: needs no role.'
  if (role === 'operator') return 'For operators of this service: needs no role in an organization.'
  return [
    `Needs the role \`${role}\` or a higher one in the organization`,
    orSelf === true ? ', or to be the member in question' : '',
    production === undefined ? '.' : '; `admin` for production of a project with `protect_production`.',
  ].join('')
}
