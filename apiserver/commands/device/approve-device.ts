import { DomainError } from '../../../lib/errors/domain-error.ts'
import { isNarrower, parseScope, type Scope } from '../../../lib/model/scope.ts'
import { newId } from '../../../lib/model/time-ordered-id.ts'
import type { ApproveDeviceBody, ApprovedDevice } from '../../contract/device-flow.ts'
import { insertAccountEvent, insertAuditEvent } from '../../store/audit.ts'
import { approveDeviceRequest, type DeviceRequestRow, lockDeviceRequest } from '../../store/login/device-requests.ts'
import { lockUser } from '../../store/users.ts'
import { epochSecondsOrNull } from '../../views/epoch-seconds.ts'
import { type AgentReach, agentReachOf, assertInForce, assertMember } from '../agent-reach.ts'
import type { Call, Reply } from '../call.ts'
import { accountEvent, callEvent } from '../call-events.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { assertFresh, proveAgain } from '../login/prove-again.ts'
import { TTL_SECONDS } from '../token-lifetime.ts'
import { assertRoom } from '../token-room.ts'
import { deviceRequestNotFound, foundDeviceRequest } from './find-device-request.ts'

const tooWide = (pointer: string, message: string): DomainError =>
  new DomainError('validation_failed', `The body field ${pointer} ${message}`, {
    errors: [{ in: 'body', pointer, code: 'wider_than_requested', message }],
  })

const scopesOf = (texts: readonly string[]): readonly Scope[] =>
  texts.map(parseScope).filter(scope => scope !== undefined)

/** What is granted: whoever approves may take from what was asked for, never add to it. @throws DomainError */
const grantOf = (
  { principal }: Call,
  row: DeviceRequestRow,
  { scopes, organization_id: organization, ttl }: ApproveDeviceBody,
): AgentReach & { readonly lifeSeconds: number | undefined } => {
  const asked = scopesOf(row.scopes)
  if (!scopesOf(scopes).every(scope => asked.some(wide => isNarrower(scope, wide))))
    throw tooWide('#/scopes', 'must lie within what was asked for')
  if (row.organizationId !== null && organization !== undefined && organization !== row.organizationId)
    throw tooWide('#/organization_id', 'must be the one that was asked for')
  const lifeSeconds = ttl === undefined ? (row.lifeSeconds ?? undefined) : TTL_SECONDS[ttl]
  if (row.lifeSeconds !== null && (lifeSeconds === undefined || lifeSeconds > row.lifeSeconds))
    throw tooWide('#/ttl', 'must not be longer than what was asked for')
  return {
    ...agentReachOf(scopes, { organization_id: organization ?? row.organizationId ?? principal.boundTo }),
    lifeSeconds,
  }
}

const answer = (row: DeviceRequestRow): ApprovedDevice => ({
  token_id: row.tokenId ?? '',
  scopes: [...(row.grantedScopes ?? [])],
  expires_at: epochSecondsOrNull(row.tokenExpiresAt),
})

/**
 * Grants a device a token of the caller's. Only what it may is kept: the token itself is made when the device fetches it.
 * @throws DomainError `device_request_not_found`, `rate_limited`, `reauthentication_required`, `validation_failed`,
 * `organization_not_found`, `quota_exceeded`, and what a password or a code that is wrong gets
 */
export const approveDevice = async (
  deps: LoginDependencies,
  call: Call,
  body: ApproveDeviceBody,
): Promise<Reply<200, ApprovedDevice>> => {
  const { userId, codeDigest } = await foundDeviceRequest(deps, call, body.user_code)
  await proveAgain(deps, call, body)
  const approved = await deps.database.transaction(async sql => {
    await assertFresh(sql, call)
    await lockUser(sql, userId)
    const row = await lockDeviceRequest(sql, codeDigest)
    if (row?.tokenId != null && row.decidedBy === userId) return answer(row)
    if (row?.state !== 'pending') throw deviceRequestNotFound()
    await assertInForce(sql, call)
    const grant = grantOf(call, row, body)
    await assertMember(sql, userId, grant)
    await assertRoom(sql, userId)
    const tokenId = newId('tok')
    const granted = await approveDeviceRequest(sql, row.deviceDigest, { ...grant, userId, tokenId })
    if (granted === undefined) throw new Error('A request that was locked is not there')
    const parameters = {
      token_id: tokenId,
      client_name: row.clientName,
      device_ip: row.clientIp,
      scopes: grant.scopes,
      expires_at: granted.tokenExpiresAt?.toISOString() ?? null,
    }
    const { organizationId } = grant
    if (organizationId === undefined)
      await insertAccountEvent(sql, accountEvent(call, 'approve_device', userId, parameters))
    else
      await insertAuditEvent(
        sql,
        callEvent(call, 'approve_device', { organizationId, resourceKind: 'token', resourceId: tokenId }, parameters),
      )
    return answer(granted)
  })
  return { status: 200, body: approved }
}
