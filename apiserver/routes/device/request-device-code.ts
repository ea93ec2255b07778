import { requestDeviceCode as request } from '../../commands/device/request-device-code.ts'
import type { Handlers } from '../../context.ts'

export const requestDeviceCode: Handlers['requestDeviceCode'] = ({ body, call }, { login }) =>
  request(login, call, body)
