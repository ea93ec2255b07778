/** Access tokens of the identity provider: a user with their whole role. Ours never leave the process: what begins like one of ours is none of these. */
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { Principal } from '../../commands/call.ts'
import { ensureIdentity } from '../../commands/ensure-identity.ts'
import type { Database } from '../../store/database.ts'
import { findIdentityCredential, type IdentityCredential } from '../../store/identities.ts'
import type { IdentityProvider } from '../oidc/identity-provider.ts'
import type { Identity } from '../oidc/judge-introspection.ts'
import type { Authenticated, Authenticator, CallOrigin } from './authenticator.ts'

/** RFC 6750, section 2.1. */
const FORM = /^[A-Za-z0-9._~+/-]+=*$/
const OURS = /^svc(?:_|k_)/

const SHOWN_DIGEST = 16

export const oidcTokens = (database: Database, provider: IdentityProvider): Authenticator => {
  const accountOf = async (
    identity: Identity,
    organizationId: string | undefined,
    origin: CallOrigin,
  ): Promise<IdentityCredential> => {
    const known = await findIdentityCredential(database, identity, organizationId)
    if (known !== undefined) return known
    await database.transaction(sql => ensureIdentity(sql, origin, identity))
    const made = await findIdentityCredential(database, identity, organizationId)
    if (made === undefined) throw new DomainError('internal_error', 'An account that was just made is not there')
    return made
  }
  return {
    asksOthers: true,
    accepts: token => FORM.test(token) && !OURS.test(token),
    find: async ({ token, digest }, organizationId, origin): Promise<Authenticated | undefined> => {
      const identity = await provider.identify(token, digest.toString('latin1'))
      if (identity === undefined) return undefined
      // Never cached: roles, and who is disabled, hold at once.
      const account = await accountOf(identity, organizationId, origin)
      if (account.disabledAt !== null) return undefined
      const principal: Principal = {
        kind: 'oidc',
        subject: account.actor ?? `user:${account.userId}`,
        userId: account.userId,
        credentialId: `oidc:${digest.toString('hex').slice(0, SHOWN_DIGEST)}`,
        isOperator: account.isOperator || identity.isOperator,
        role: account.role ?? undefined,
        scopes: undefined,
      }
      return { principal }
    },
  }
}
