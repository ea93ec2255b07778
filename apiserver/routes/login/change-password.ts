import { changePassword as change } from '../../commands/login/change-password.ts'
import type { Handlers } from '../../context.ts'

export const changePassword: Handlers['changePassword'] = ({ body, call }, { login }) => change(login, call, body)
