import { revokeOtherSessions as end } from '../../commands/login/end-sessions.ts'
import type { Handlers } from '../../context.ts'

export const revokeOtherSessions: Handlers['revokeOtherSessions'] = ({ call }, { login }) => end(login, call)
