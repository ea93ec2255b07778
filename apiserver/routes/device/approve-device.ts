import { approveDevice as approve } from '../../commands/device/approve-device.ts'
import type { Handlers } from '../../context.ts'

export const approveDevice: Handlers['approveDevice'] = ({ body, call }, { login }) => approve(login, call, body)
