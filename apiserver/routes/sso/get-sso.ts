import { redirectUriOf, ssoNotFound } from '../../commands/sso/sso-rules.ts'
import type { Handlers } from '../../context.ts'
import { findSso } from '../../store/sso-configurations.ts'
import { ssoView } from '../../views/sso-view.ts'

export const getSso: Handlers['getSso'] = async ({ params }, { database, login }) => {
  const row = await findSso(database, params.org)
  if (row === undefined) throw ssoNotFound()
  return { status: 200, body: ssoView(row, redirectUriOf(login.settings)) }
}
