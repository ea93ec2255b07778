import { revokeSession as end } from '../../commands/login/end-sessions.ts'
import type { Handlers } from '../../context.ts'

export const revokeSession: Handlers['revokeSession'] = ({ params, call }, { login }) =>
  end(login, call, params.session)
