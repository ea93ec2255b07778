import { pollDeviceToken as poll } from '../../commands/device/poll-device-token.ts'
import type { Handlers } from '../../context.ts'

export const pollDeviceToken: Handlers['pollDeviceToken'] = ({ body, call }, context) => poll(context, call, body)
