import { previewReset } from '../../commands/login/reset-password.ts'
import type { Handlers } from '../../context.ts'

export const previewPasswordReset: Handlers['previewPasswordReset'] = ({ body, call }, { login }) =>
  previewReset(login, call, body.token)
