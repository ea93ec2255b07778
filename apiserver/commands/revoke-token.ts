import { DomainError } from '../../lib/errors/domain-error.ts'
import type { TokenRecord } from '../contract/account-tokens.ts'
import { revokeToken as endToken, lockToken } from '../store/tokens.ts'
import { tokenView } from '../views/token-view.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'
import { tokenEvents } from './token-event.ts'

/**
 * Revokes a token of the caller, at once; an agent's token only itself. One that is revoked already answers the same record
 * and leaves no event.
 * @throws DomainError `token_not_found`, also for tokens of others; `credential_not_allowed`
 */
export const revokeToken = (deps: CommandDependencies, call: Call, tokenId: string): Promise<Reply<200, TokenRecord>> =>
  execute(deps, call, async sql => {
    const { kind, credentialId, userId } = call.principal
    if (kind === 'agent' && tokenId !== credentialId)
      throw new DomainError('credential_not_allowed', 'An agent’s token may revoke itself and no other')
    const before = userId === undefined ? undefined : await lockToken(sql, userId, tokenId)
    if (before === undefined) throw new DomainError('token_not_found', 'You have no token with this id')
    const revoked = await endToken(sql, tokenId)
    if (revoked === undefined) return { status: 200, body: tokenView(before) }
    return {
      status: 200,
      body: tokenView(revoked),
      ...tokenEvents(call, 'revoke_token', revoked, { name: revoked.name }),
    }
  })
