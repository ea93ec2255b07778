import { shownUserCode } from '../../../lib/credentials/user-code.ts'
import { foundDeviceRequest } from '../../commands/device/find-device-request.ts'
import type { Handlers } from '../../context.ts'

export const getDeviceRequest: Handlers['getDeviceRequest'] = async ({ params, call }, { login }) => {
  const { code, row } = await foundDeviceRequest(login, call, params.user_code)
  return {
    status: 200,
    body: {
      user_code: shownUserCode(code),
      client_name: row.clientName,
      client_ip: row.clientIp,
      requested_scopes: [...row.scopes],
      organization_id: row.organizationId,
      ttl_seconds: row.lifeSeconds,
      expires_at: row.expiresAt.toISOString(),
    },
  }
}
