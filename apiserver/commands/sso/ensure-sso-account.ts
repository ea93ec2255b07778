import { newId } from '../../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { Sql } from '../../store/sql.ts'
import { findSsoUserId, insertSsoUser, type SsoIdentity } from '../../store/sso-accounts.ts'
import type { OpenCall } from '../call.ts'
import { visitMetadata } from '../login/begin-session.ts'

/**
 * The account of somebody whom an organization's identity provider knows: made when they first sign in, or are first named. What
 * the provider says of mail addresses is no part of it: it would take them from whoever reads that mail.
 */
export const ensureSsoAccount = async (
  sql: Sql,
  call: OpenCall,
  identity: SsoIdentity & { readonly name: string },
): Promise<{ readonly userId: string; readonly isNew: boolean }> => {
  const { organizationId, issuer, subject } = identity
  const userId = newId('usr')
  if (!(await insertSsoUser(sql, { ...identity, userId }))) {
    const known = await findSsoUserId(sql, identity)
    if (known === undefined) throw new Error('An account that is taken is not there')
    return { userId: known, isNew: false }
  }
  const { clientIp, userAgent } = call
  const metadata = visitMetadata(call, { organization_id: organizationId, issuer, subject })
  await insertAccountEvent(sql, { type: 'create_user', userId, clientIp, userAgent, metadata })
  return { userId, isNew: true }
}
