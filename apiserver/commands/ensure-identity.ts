import { newId } from '../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../store/audit.ts'
import { findUserIdByIdentity, insertIdentity } from '../store/identities.ts'
import type { Sql } from '../store/sql.ts'
import type { OpenCall } from './call.ts'
import { visitMetadata } from './login/begin-session.ts'

/**
 * The account of somebody whom the identity provider of this service knows: made when they are first seen, or first named, by
 * which call its event tells.
 */
export const ensureIdentity = async (
  sql: Sql,
  call: Pick<OpenCall, 'requestId' | 'clientIp' | 'userAgent'>,
  { issuer, subject, name }: { readonly issuer: string; readonly subject: string; readonly name: string },
): Promise<string> => {
  const made = await insertIdentity(sql, { userId: newId('usr'), name, issuer, subject, actor: subject })
  if (made === undefined) {
    const known = await findUserIdByIdentity(sql, { issuer, subject })
    if (known === undefined) throw new Error('An account that is taken is not there')
    return known
  }
  const { clientIp, userAgent } = call
  const metadata = visitMetadata(call, { issuer, subject })
  await insertAccountEvent(sql, { type: 'create_user', userId: made.userId, clientIp, userAgent, metadata })
  return made.userId
}
