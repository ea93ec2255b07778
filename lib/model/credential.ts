/** Roles, access levels and credential kinds: the words of authorization. */

/** Nested: each role may do what the ones before it may. */
export const ROLES = ['viewer', 'developer', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** Whether a role reaches at least another one. */
export const roleAtLeast = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed)

export const CREDENTIAL_KINDS = ['personal', 'agent', 'api_key', 'session', 'oidc'] as const
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number]
