import { DomainError } from '../../../lib/errors/domain-error.ts'
import { sessionUser } from '../../commands/login/end-sessions.ts'
import type { Handlers } from '../../context.ts'
import { findAccount } from '../../store/login/passwords.ts'
import { findSession } from '../../store/login/sessions.ts'
import { listOrganizations } from '../../store/organizations.ts'
import { personView, sessionView } from '../../views/session-view.ts'

/** More memberships than these are read by listOrganizations. */
const MOST = 200

export const getSession: Handlers['getSession'] = async ({ call }, { login }) => {
  const { database, settings } = login
  const userId = sessionUser(call)
  const [account, session] = await Promise.all([
    findAccount(database, userId),
    findSession(database, userId, call.principal.credentialId),
  ])
  // It ended between the look at its token and this one.
  if (account === undefined || session === undefined) throw new DomainError('invalid_token', 'The session is over')
  const only = session.organizationId === null ? undefined : [session.organizationId]
  const { items } = await listOrganizations(database, userId, only, { limit: MOST })
  return {
    status: 200,
    body: {
      user: personView(account),
      session: sessionView(session, settings.sessions, session.id),
      organizations: items.map(({ organizationId, name, role }) => ({ organization_id: organizationId, name, role })),
    },
  }
}
