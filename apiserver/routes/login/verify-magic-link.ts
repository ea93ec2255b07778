import { verifyMagicLink as verify } from '../../commands/login/verify-magic-link.ts'
import type { Handlers } from '../../context.ts'

export const verifyMagicLink: Handlers['verifyMagicLink'] = ({ body, call }, { login }) => verify(login, call, body)
