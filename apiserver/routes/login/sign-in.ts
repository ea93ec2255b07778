import { signIn as begin } from '../../commands/login/sign-in.ts'
import type { Handlers } from '../../context.ts'

export const signIn: Handlers['signIn'] = ({ body, call }, { login }) => begin(login, call, body)
