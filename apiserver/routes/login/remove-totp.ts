import { removeTotp as remove } from '../../commands/login/manage-totp.ts'
import type { Handlers } from '../../context.ts'

export const removeTotp: Handlers['removeTotp'] = ({ body, call }, { login }) => remove(login, call, body)
