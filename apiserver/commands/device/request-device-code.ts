import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { newUserCode, shownUserCode, userCodeDigest } from '../../../lib/credentials/user-code.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { type DeviceCodeBody, type DeviceCodeRecord, requestedScopes } from '../../contract/device-flow.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { countPendingRequests, insertDeviceRequest } from '../../store/login/device-requests.ts'
import type { Sql } from '../../store/sql.ts'
import { agentReachOf } from '../agent-reach.ts'
import type { OpenCall, Reply } from '../call.ts'
import { visitMetadata } from '../login/begin-session.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { AGENT_SECONDS, TTL_SECONDS } from '../token-lifetime.ts'

/** How long both codes are good. */
export const VALID_SECONDS = 600
/** What a device waits between polls, until it is told to wait longer. */
export const INTERVAL_SECONDS = 5

const REQUESTS: AttemptLimit = { bucket: 'device-code', most: 10, windowSeconds: 300 }
const MOST_PENDING = 50

/** Too much of something that an address, or a session, may do only so often. */
export const tooMany = (policy: string, retryAfterSeconds: number): DomainError =>
  new DomainError('rate_limited', `Too many requests, wait ${retryAfterSeconds} s`, {
    details: { 'violated-policies': [policy] },
    retryAfterSeconds,
  })

/** Answered, not thrown: what was counted has to be kept. */
const refusal = async (sql: Sql, { clientKey }: OpenCall): Promise<DomainError | undefined> => {
  const { allowed, retryAfterSeconds } = await countAttempt(sql, REQUESTS, clientKey)
  if (!allowed) return tooMany(REQUESTS.bucket, retryAfterSeconds)
  return (await countPendingRequests(sql, clientKey)) < MOST_PENDING
    ? undefined
    : tooMany('device-pending', VALID_SECONDS)
}

/**
 * Begins a request of a device. Nothing is promised by it: what it asks for is judged when somebody approves.
 * @throws DomainError `rate_limited`, `scope_organization_required`, `scope_organization_mismatch`
 */
export const requestDeviceCode = async (
  { database, settings }: LoginDependencies,
  call: OpenCall,
  body: DeviceCodeBody,
): Promise<Reply<200, DeviceCodeRecord>> => {
  const { scopes, organizationId } = agentReachOf(requestedScopes(body), body)
  const device = newOneTimeToken('dev')
  const made = await database.transaction(async sql => {
    const refused = await refusal(sql, call)
    if (refused !== undefined) return refused
    let code: string
    do code = newUserCode()
    while (
      !(await insertDeviceRequest(sql, {
        deviceDigest: device.digest,
        userCodeDigest: userCodeDigest(settings.codeKey, code),
        clientName: body.client_name,
        clientIp: call.clientIp,
        clientKey: call.clientKey,
        scopes,
        organizationId: organizationId ?? null,
        lifeSeconds: body.ttl === undefined ? AGENT_SECONDS : (TTL_SECONDS[body.ttl] ?? null),
        intervalSeconds: INTERVAL_SECONDS,
        validSeconds: VALID_SECONDS,
      }))
    )
    await insertAccountEvent(sql, {
      type: 'device_requested',
      userId: null,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { client_name: body.client_name, scopes, organization_id: organizationId ?? null }),
    })
    return shownUserCode(code)
  })
  if (made instanceof DomainError) throw made
  const page = settings.links.page('/auth/device')
  return {
    status: 200,
    body: {
      device_code: device.token,
      user_code: made,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${made}`,
      expires_in: VALID_SECONDS,
      interval: INTERVAL_SECONDS,
    },
  }
}
