import { newId } from '../../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { Sql } from '../../store/sql.ts'
import { insertUser, lockUserByEmail, type UserRow } from '../../store/users.ts'
import type { OpenCall } from '../call.ts'
import { visitMetadata } from './begin-session.ts'

/** Makes an account of an address in lower case, or finds the one that was made in this very moment. */
export const makeAccount = async (
  sql: Sql,
  call: OpenCall,
  { email, name }: { readonly email: string; readonly name?: string | undefined },
): Promise<UserRow | undefined> => {
  const user = { userId: newId('usr'), email, name: name ?? email.slice(0, email.indexOf('@')), isOperator: false }
  const made = await insertUser(sql, user)
  if (made === undefined) return lockUserByEmail(sql, email)
  await insertAccountEvent(sql, {
    type: 'create_user',
    userId: made.userId,
    email,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call),
  })
  return made
}
