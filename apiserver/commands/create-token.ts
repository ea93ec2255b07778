import { newPersonalToken } from '../../lib/credentials/token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { CreatedToken, CreateTokenBody } from '../contract/account-tokens.ts'
import type { Sql } from '../store/sql.ts'
import { countActiveTokens, findTokenExpiry, insertToken } from '../store/tokens.ts'
import { lockUser } from '../store/users.ts'
import { tokenView } from '../views/token-view.ts'
import type { Call, Reply } from './call.ts'
import { accountEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

/** Tokens that a user may have at once. */
const MAX_ACTIVE_TOKENS = 500

const DAY_SECONDS = 86_400
const TTL_SECONDS: Readonly<Record<NonNullable<CreateTokenBody['ttl']>, number | undefined>> = {
  '30m': 1800,
  '1h': 3600,
  '24h': DAY_SECONDS,
  '7d': 7 * DAY_SECONDS,
  '30d': 30 * DAY_SECONDS,
  never: undefined,
}

/** Seconds to live; undefined: for ever. @throws DomainError `expiry_conflict` */
const lifetimeOf = ({ ttl, expires_in_days: days }: CreateTokenBody): number | undefined => {
  if (ttl !== undefined && days !== undefined)
    throw new DomainError('expiry_conflict', 'Give ttl or expires_in_days, not both')
  if (ttl !== undefined) return TTL_SECONDS[ttl]
  return days === undefined ? undefined : days * DAY_SECONDS
}

/** A token may not outlive the one that made it: else a stolen short one buys a long one. */
const assertNotOutliving = async (sql: Sql, call: Call, lifetimeSeconds: number | undefined): Promise<void> => {
  if (call.principal.kind !== 'personal') return
  const maker = await findTokenExpiry(sql, call.principal.credentialId)
  if (maker === undefined || maker.expiresAt === null) return
  const left = Math.max(0, Math.floor((maker.expiresAt.getTime() - maker.now.getTime()) / 1000))
  if (lifetimeSeconds !== undefined && lifetimeSeconds <= left) return
  const message = `must not outlive the token that makes it, which expires in ${left} seconds`
  throw new DomainError('validation_failed', `The new token ${message}`, {
    errors: [{ in: 'body', pointer: '#/ttl', code: 'outlives_credential', message }],
  })
}

/**
 * Makes a personal token of the caller. Only its digest is kept; the secret stands in this one answer, which can be
 * repeated for ten minutes by whoever has the Idempotency-Key.
 * @throws DomainError `expiry_conflict`, `validation_failed`, `quota_exceeded`
 */
export const createToken = (
  deps: CommandDependencies,
  call: Call,
  body: CreateTokenBody,
): Promise<Reply<201, CreatedToken>> =>
  execute(deps, call, async sql => {
    const { userId } = call.principal
    if (userId === undefined) throw new DomainError('credential_not_allowed', 'Only users have account tokens')
    const lifetimeSeconds = lifetimeOf(body)
    await assertNotOutliving(sql, call, lifetimeSeconds)
    await lockUser(sql, userId)
    const used = await countActiveTokens(sql, userId)
    if (used >= MAX_ACTIVE_TOKENS)
      throw new DomainError('quota_exceeded', `You have ${used} active tokens, ${MAX_ACTIVE_TOKENS} are allowed`, {
        details: { cap: 'tokens_per_user', limit: MAX_ACTIVE_TOKENS, used },
      })
    const { token, prefix, digest } = newPersonalToken()
    const id = newId('tok')
    const row = await insertToken(sql, { id, userId, name: body.name, digest, tokenPrefix: prefix, lifetimeSeconds })
    return {
      status: 201,
      body: { ...tokenView(row), token },
      secret: { subjectId: id },
      accountEvents: [
        accountEvent(call, 'create_token', userId, {
          token_id: id,
          name: body.name,
          expires_at: row.expiresAt?.toISOString() ?? null,
        }),
      ],
    }
  })
