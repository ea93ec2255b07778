import { insertAccountEvent } from '../../store/audit.ts'
import { denyDeviceRequest, lockDeviceRequest } from '../../store/login/device-requests.ts'
import type { Call, Reply } from '../call.ts'
import { accountEvent } from '../call-events.ts'
import type { LoginDependencies } from '../login/dependencies.ts'
import { deviceRequestNotFound, foundDeviceRequest } from './find-device-request.ts'

/**
 * Refuses a device, or takes back what the caller granted it as long as it was not fetched.
 * @throws DomainError `device_request_not_found`, `rate_limited`
 */
export const denyDevice = async (
  deps: LoginDependencies,
  call: Call,
  { user_code: typed }: { readonly user_code: string },
): Promise<Reply<204, undefined>> => {
  const { userId, codeDigest } = await foundDeviceRequest(deps, call, typed)
  await deps.database.transaction(async sql => {
    const row = await lockDeviceRequest(sql, codeDigest)
    const isOwn = row?.state === 'approved' && row.decidedBy === userId
    if (row === undefined || (row.state !== 'pending' && !isOwn)) throw deviceRequestNotFound()
    await denyDeviceRequest(sql, row.deviceDigest, userId)
    await insertAccountEvent(
      sql,
      accountEvent(call, 'device_denied', userId, {
        client_name: row.clientName,
        device_ip: row.clientIp,
        ...(row.tokenId === null ? {} : { token_id: row.tokenId }),
      }),
    )
  })
  return { status: 204 }
}
