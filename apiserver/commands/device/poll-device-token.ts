import { createHash } from 'node:crypto'
import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { newAgentToken, tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { DeviceTokenBody, DeviceTokenRecord } from '../../contract/device-flow.ts'
import { insertAccountEvent, insertAuditEvent } from '../../store/audit.ts'
import {
  type DevicePoll,
  denyDeviceRequest,
  pollDeviceRequest,
  redeemDeviceRequest,
} from '../../store/login/device-requests.ts'
import { holdMembership } from '../../store/memberships.ts'
import type { Sql } from '../../store/sql.ts'
import { findToken, insertToken, type TokenRow } from '../../store/tokens.ts'
import { findUser, lockUser } from '../../store/users.ts'
import { organizationsNamed } from '../agent-reach.ts'
import type { OpenCall, Reply } from '../call.ts'
import type { CommandDependencies } from '../dependencies.ts'
import { handover } from '../handover.ts'
import { visitMetadata } from '../login/begin-session.ts'
import { openReply, type SealContext, sealReply } from '../seal-reply.ts'
import { hasRoom } from '../token-room.ts'

const SLOW_DOWN_SECONDS = 5

const invalidGrant = (): DomainError =>
  new DomainError('invalid_grant', 'The device code is not valid: it is unknown, or its token was fetched already')

const accessDenied = (): DomainError => new DomainError('access_denied', 'The request was refused')

/** What a poll gets that is not to have a token now; undefined: it is to have one. */
const refusalOf = (poll: DevicePoll | undefined): DomainError | undefined => {
  if (poll === undefined) return invalidGrant()
  if (poll.expired) return new DomainError('expired_token', 'The device code ran out: begin anew')
  if (poll.state === 'denied') return accessDenied()
  if (poll.tooSoon)
    return new DomainError('slow_down', `Wait ${SLOW_DOWN_SECONDS} seconds more between polls from now on`)
  return poll.state === 'pending'
    ? new DomainError('authorization_pending', 'Nobody has approved the request yet')
    : undefined
}

/**
 * What a token is sealed by that was handed out: the code, which the device alone has, and the address that fetched it. Who gets hold
 * of a code later, elsewhere, learns no token by it.
 */
const sealContextOf = ({ sealingKey }: CommandDependencies, { clientKey }: OpenCall, code: string): SealContext => ({
  sealingKey,
  callersKey: code,
  scopeHash: createHash('sha256')
    .update(JSON.stringify(['device', clientKey]))
    .digest(),
})

const recordOf = ({ settings }: CommandDependencies, row: TokenRow, token: string, at: Date): DeviceTokenRecord => ({
  access_token: token,
  token_type: 'Bearer',
  ...(row.expiresAt && { expires_in: Math.max(0, Math.floor((row.expiresAt.getTime() - at.getTime()) / 1000)) }),
  scope: (row.scopes ?? []).join(' '),
  token_id: row.id,
  ...handover(settings.links, row, token),
})

/** Whether whoever approved still has what they granted. */
const mayStillGrant = async (sql: Sql, userId: string, poll: DevicePoll): Promise<boolean> => {
  await lockUser(sql, userId)
  if ((await findUser(sql, userId))?.disabledAt !== null || !(await hasRoom(sql, userId))) return false
  const reach = { scopes: poll.grantedScopes ?? [], organizationId: poll.grantedOrganizationId ?? undefined }
  for (const id of organizationsNamed(reach)) if (!(await holdMembership(sql, id, userId))) return false
  return true
}

/** Told where tokens are told that their user makes: of whoever approved, since the device is nobody. */
const noteToken = async (sql: Sql, call: OpenCall, row: TokenRow): Promise<void> => {
  const { id, userId, organizationId, name, scopes, expiresAt } = row
  const metadata = visitMetadata(call, {
    token_id: id,
    name,
    expires_at: expiresAt?.toISOString() ?? null,
    scopes,
    method: 'device_flow',
  })
  if (organizationId === null) {
    const { clientIp, userAgent } = call
    await insertAccountEvent(sql, { type: 'create_token', userId, clientIp, userAgent, metadata })
  } else
    await insertAuditEvent(sql, {
      organizationId,
      actor: `user:${userId}`,
      action: 'create_token',
      resourceKind: 'token',
      resourceId: id,
      metadata: { ...metadata, client_ip: call.clientIp },
    })
}

const issue = async (
  sql: Sql,
  deps: CommandDependencies,
  call: OpenCall,
  poll: DevicePoll,
  code: string,
): Promise<DeviceTokenRecord | DomainError> => {
  const { decidedBy: userId, tokenId, grantedScopes: scopes, deviceDigest } = poll
  if (userId === null || tokenId === null || scopes === null) throw new Error('A grant does not say what it is')
  if (!(await mayStillGrant(sql, userId, poll))) {
    await denyDeviceRequest(sql, deviceDigest, userId)
    return accessDenied()
  }
  const expiresAt = poll.tokenExpiresAt ?? undefined
  const { token, prefix: tokenPrefix, digest } = newAgentToken(scopes, expiresAt)
  const sealed = sealReply(Buffer.from(token), sealContextOf(deps, call, code))
  if (!(await redeemDeviceRequest(sql, deviceDigest, sealed))) return invalidGrant()
  const row = await insertToken(sql, {
    id: tokenId,
    userId,
    name: poll.clientName,
    digest,
    tokenPrefix,
    expiresAt,
    scopes,
    organizationId: poll.grantedOrganizationId ?? undefined,
  })
  await noteToken(sql, call, row)
  return recordOf(deps, row, token, poll.at)
}

/** The token that was handed out, for a device whose answer was lost. */
const tellAgain = async (
  sql: Sql,
  deps: CommandDependencies,
  call: OpenCall,
  { sealedToken, decidedBy, tokenId, at }: DevicePoll,
  code: string,
): Promise<DeviceTokenRecord | DomainError> => {
  const token = sealedToken === null ? undefined : openReply(sealedToken, sealContextOf(deps, call, code))
  if (token === undefined || decidedBy === null || tokenId === null) return invalidGrant()
  const row = await findToken(sql, decidedBy, tokenId)
  const isInForce = row?.revokedAt === null && (row.expiresAt === null || row.expiresAt > at)
  return isInForce ? recordOf(deps, row, token.toString(), at) : invalidGrant()
}

/**
 * Asks for the token of a device code: one is made, once. Whoever fetched it is told it again for ten minutes, as long as it is in
 * force: an answer can be lost on its way. Of polls at the same moment all get the same.
 * @throws DomainError `authorization_pending`, `slow_down`, `access_denied`, `expired_token`, `invalid_grant`
 */
export const pollDeviceToken = async (
  deps: CommandDependencies,
  call: OpenCall,
  { device_code: code }: DeviceTokenBody,
): Promise<Reply<200, DeviceTokenRecord>> => {
  if (!isOneTimeToken('dev', code)) throw invalidGrant()
  // Answered inside, not thrown: the poll was counted, and that has to be kept.
  const outcome = await deps.database.transaction(async sql => {
    const poll = await pollDeviceRequest(sql, tokenDigest(code), SLOW_DOWN_SECONDS)
    if (poll?.state === 'redeemed') return tellAgain(sql, deps, call, poll, code)
    const refused = refusalOf(poll)
    return poll === undefined || refused !== undefined
      ? (refused ?? invalidGrant())
      : issue(sql, deps, call, poll, code)
  })
  if (outcome instanceof DomainError) throw outcome
  return { status: 200, body: outcome }
}
