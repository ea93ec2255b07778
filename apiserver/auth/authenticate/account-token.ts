/** Tokens of users: personal ones, `svc_pat_…`, with their whole role, and agents' ones, `svc_agt_…`, within their scopes. */
import { tokenKindOf } from '../../../lib/credentials/token.ts'
import { parseScope, type Scope } from '../../../lib/model/scope.ts'
import type { Principal } from '../../commands/call.ts'
import { findTokenCredential } from '../../store/credentials.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import type { Authenticated, Authenticator } from './authenticator.ts'

/** What a row's texts allow, within the binding; one that is no scope, of an older grammar say, allows nothing. */
const scopesOf = (texts: readonly string[], boundTo: string | null): readonly Scope[] =>
  texts
    .map(parseScope)
    .filter(scope => scope !== undefined)
    .map(scope => (boundTo === null ? scope : { ...scope, organizationId: scope.organizationId ?? boundTo }))

export const accountTokens = (sql: Sql, lastUsed: LastUsed): Authenticator => ({
  accepts: token => ['personal', 'agent'].includes(tokenKindOf(token) ?? ''),
  find: async ({ digest }, organizationId): Promise<Authenticated | undefined> => {
    const credential = await findTokenCredential(sql, digest, organizationId)
    if (credential === undefined) return undefined
    if (credential.stale) lastUsed.mark('tokens', credential.id)
    const principal: Principal = {
      kind: credential.kind,
      subject: credential.actor ?? `user:${credential.userId}`,
      userId: credential.userId,
      credentialId: credential.id,
      isOperator: credential.kind === 'personal' && credential.isOperator,
      role: credential.role ?? undefined,
      boundTo: credential.boundTo ?? undefined,
      scopes: credential.kind === 'agent' ? scopesOf(credential.scopes ?? [], credential.boundTo) : undefined,
    }
    return { principal }
  },
})
