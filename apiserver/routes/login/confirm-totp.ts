import { confirmTotp as confirm } from '../../commands/login/manage-totp.ts'
import type { Handlers } from '../../context.ts'

export const confirmTotp: Handlers['confirmTotp'] = ({ body, call }, { login }) => confirm(login, call, body.code)
