import { completeReset } from '../../commands/login/reset-password.ts'
import type { Handlers } from '../../context.ts'

export const completePasswordReset: Handlers['completePasswordReset'] = ({ body, call }, { login }) =>
  completeReset(login, call, body)
