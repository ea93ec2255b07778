import { beginTotp as begin } from '../../commands/login/manage-totp.ts'
import type { Handlers } from '../../context.ts'

export const beginTotp: Handlers['beginTotp'] = ({ body, call }, { login }) => begin(login, call, body.password)
