import { signInMfa as begin } from '../../commands/login/sign-in-mfa.ts'
import type { Handlers } from '../../context.ts'

export const signInMfa: Handlers['signInMfa'] = ({ body, call }, { login }) => begin(login, call, body)
