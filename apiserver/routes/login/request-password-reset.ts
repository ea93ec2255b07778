import { requestPasswordReset as ask } from '../../commands/login/request-password-reset.ts'
import type { Handlers } from '../../context.ts'

export const requestPasswordReset: Handlers['requestPasswordReset'] = ({ body, call }, { login }) =>
  ask(login, call, body.email)
