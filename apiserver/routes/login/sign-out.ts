import { signOut as end } from '../../commands/login/end-sessions.ts'
import type { Handlers } from '../../context.ts'

export const signOut: Handlers['signOut'] = ({ call }, { login }) => end(login, call)
