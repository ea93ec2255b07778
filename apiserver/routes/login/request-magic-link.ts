import { requestMagicLink as ask } from '../../commands/login/request-magic-link.ts'
import type { Handlers } from '../../context.ts'

export const requestMagicLink: Handlers['requestMagicLink'] = ({ body, call }, { login }) =>
  ask(login, call, body.email)
