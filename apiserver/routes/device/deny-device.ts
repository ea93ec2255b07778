import { denyDevice as deny } from '../../commands/device/deny-device.ts'
import type { Handlers } from '../../context.ts'

export const denyDevice: Handlers['denyDevice'] = ({ body, call }, { login }) => deny(login, call, body)
