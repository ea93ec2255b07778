import { sessionUser } from '../../commands/login/end-sessions.ts'
import type { Handlers } from '../../context.ts'
import { listSessions as list } from '../../store/login/sessions.ts'
import { sessionView } from '../../views/session-view.ts'

export const listSessions: Handlers['listSessions'] = async ({ query, call }, { login }) => {
  const { sessions: life } = login.settings
  const page = await list(login.database, sessionUser(call), life, query)
  const sessions = page.items.map(row => sessionView(row, life, call.principal.credentialId))
  return { status: 200, body: { sessions, next_cursor: page.nextCursor } }
}
