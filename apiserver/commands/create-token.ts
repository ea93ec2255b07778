import { type NewToken, newAgentToken, newPersonalToken } from '../../lib/credentials/token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { CreatedToken, CreateTokenBody } from '../contract/account-tokens.ts'
import type { Sql } from '../store/sql.ts'
import { findTokenExpiry, insertToken } from '../store/tokens.ts'
import { lockUser } from '../store/users.ts'
import { tokenView } from '../views/token-view.ts'
import { type AgentReach, agentReachOf, assertInForce, assertMember } from './agent-reach.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'
import { handover } from './handover.ts'
import { tokenEvents } from './token-event.ts'
import { AGENT_SECONDS, DAY_SECONDS, TTL_SECONDS } from './token-lifetime.ts'
import { assertRoom } from './token-room.ts'

/** Seconds to live; undefined: for ever. @throws DomainError `expiry_conflict` */
const lifetimeOf = ({ ttl, expires_in_days: days, scopes }: CreateTokenBody): number | undefined => {
  if (ttl !== undefined && days !== undefined)
    throw new DomainError('expiry_conflict', 'Give ttl or expires_in_days, not both')
  if (ttl !== undefined) return TTL_SECONDS[ttl]
  if (days !== undefined) return days * DAY_SECONDS
  return scopes === undefined ? undefined : AGENT_SECONDS
}

/** A token may not outlive the one that made it: else a stolen short one buys a long one. */
const assertNotOutliving = async (sql: Sql, call: Call, expiresAt: Date | undefined, now: Date): Promise<void> => {
  if (call.principal.kind !== 'personal') return
  const maker = await findTokenExpiry(sql, call.principal.credentialId)
  if (maker === undefined || maker.expiresAt === null) return
  if (expiresAt !== undefined && expiresAt <= maker.expiresAt) return
  const left = Math.max(0, Math.floor((maker.expiresAt.getTime() - now.getTime()) / 1000))
  const message = `must not outlive the token that makes it, which expires in ${left} seconds`
  throw new DomainError('validation_failed', `The new token ${message}`, {
    errors: [{ in: 'body', pointer: '#/ttl', code: 'outlives_credential', message }],
  })
}

/** What the new token reaches: never more than the credential that makes it. */
const reachOf = ({ principal }: Call, { scopes = [], organization_id: given }: CreateTokenBody): AgentReach =>
  agentReachOf(scopes, { organization_id: given ?? principal.boundTo })

/**
 * Makes a token of the caller: a personal one, or with scopes one for an agent. Only its digest is kept; the secret stands
 * in this one answer, which can be repeated for ten minutes by whoever has the Idempotency-Key.
 * @throws DomainError `expiry_conflict`, `validation_failed`, `quota_exceeded`, `scope_organization_required`,
 * `scope_organization_mismatch`, `organization_not_found`
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
    const reach = reachOf(call, body)
    const now = await lockUser(sql, userId)
    await assertInForce(sql, call)
    const expiresAt = lifetimeSeconds === undefined ? undefined : new Date(now.getTime() + lifetimeSeconds * 1000)
    await assertNotOutliving(sql, call, expiresAt, now)
    await assertMember(sql, userId, reach)
    await assertRoom(sql, userId)
    const drawn: NewToken = body.scopes === undefined ? newPersonalToken() : newAgentToken(reach.scopes, expiresAt)
    const { token, prefix: tokenPrefix, digest } = drawn
    const id = newId('tok')
    const row = await insertToken(sql, {
      id,
      userId,
      name: body.name,
      digest,
      tokenPrefix,
      expiresAt,
      scopes: body.scopes,
      organizationId: reach.organizationId,
    })
    return {
      status: 201,
      body: { ...tokenView(row), token, ...(row.kind === 'agent' && handover(deps.settings.links, row, token)) },
      secret: { subjectId: id },
      ...tokenEvents(call, 'create_token', row, {
        name: body.name,
        expires_at: row.expiresAt?.toISOString() ?? null,
        ...(body.scopes && { scopes: body.scopes }),
      }),
    }
  })
