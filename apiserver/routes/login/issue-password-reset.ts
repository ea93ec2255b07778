import { issueReset } from '../../commands/login/reset-password.ts'
import type { Handlers } from '../../context.ts'

export const issuePasswordReset: Handlers['issuePasswordReset'] = ({ body, call }, { login }) =>
  issueReset(login, call, body)
