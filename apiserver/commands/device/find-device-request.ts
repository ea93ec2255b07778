import { typedUserCode, userCodeDigest } from '../../../lib/credentials/user-code.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { type AttemptLimit, countAttempt, takeBackAttempt } from '../../store/login/attempts.ts'
import { type DeviceRequestRow, findDeviceRequest } from '../../store/login/device-requests.ts'
import type { Sql } from '../../store/sql.ts'
import type { Call } from '../call.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { sessionUser } from '../login/end-sessions.ts'
import { tooMany } from './request-device-code.ts'

const MISSES_OF_SESSION: AttemptLimit = { bucket: 'device-misses', most: 5, windowSeconds: 300 }
const MISSES_OF_ADDRESS: AttemptLimit = { bucket: 'device-misses-address', most: 20, windowSeconds: 300 }

/** What a user code gets that is unknown, ran out or was decided by somebody else: one error for all. */
export const deviceRequestNotFound = (): DomainError =>
  new DomainError('device_request_not_found', 'No device waits with this code: it is wrong, too old or used')

/** A request that somebody may decide, and how to find it again. */
export interface FoundDeviceRequest {
  readonly userId: string
  readonly code: string
  readonly codeDigest: Buffer
  readonly row: DeviceRequestRow
}

/** Still open, or this user's own decision. */
const mayBeSeenBy = (row: DeviceRequestRow | undefined, userId: string): row is DeviceRequestRow =>
  row !== undefined && (row.state === 'pending' || (row.decidedBy === userId && row.state !== 'denied'))

/**
 * The request of a code that somebody typed. Every look counts as a miss before it is judged; one that hits is taken back,
 * and the misses before it stand.
 * @throws DomainError `device_request_not_found`, `rate_limited`
 */
export const foundDeviceRequest = async (
  { database, settings }: LoginDependencies,
  call: Call,
  typed: string,
): Promise<FoundDeviceRequest> => {
  const userId = sessionUser(call)
  const code = typedUserCode(typed)
  const codeDigest = userCodeDigest(settings.codeKey, code ?? '')
  const counters = [
    [MISSES_OF_SESSION, call.principal.credentialId],
    [MISSES_OF_ADDRESS, call.clientKey],
  ] as const
  const look = async (sql: Sql): Promise<FoundDeviceRequest | DomainError> => {
    // Answered, not thrown: what was counted has to be kept.
    for (const [limit, who] of counters) {
      const { allowed, retryAfterSeconds } = await countAttempt(sql, limit, who)
      if (!allowed) return tooMany(limit.bucket, retryAfterSeconds)
    }
    const row = code === undefined ? undefined : await findDeviceRequest(sql, codeDigest)
    if (code === undefined || !mayBeSeenBy(row, userId)) return deviceRequestNotFound()
    for (const [limit, who] of counters) await takeBackAttempt(sql, limit.bucket, who)
    return { userId, code, codeDigest, row }
  }
  const found = await database.transaction(look)
  if (found instanceof DomainError) throw found
  return found
}
