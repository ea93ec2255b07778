import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { AccountEventType } from '../../../lib/model/audit.ts'
import { insertAccountEvent, type NewAccountEvent } from '../../store/audit.ts'
import { endAnySession, endOtherSessions, endSession } from '../../store/login/sessions.ts'
import type { Call, Reply } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'

/** The user of a session. @throws DomainError `credential_not_allowed` for what is none, which the policy refuses before */
export const sessionUser = ({ principal }: Call): string => {
  const { userId, kind } = principal
  if (userId !== undefined && kind === 'session') return userId
  throw new DomainError('credential_not_allowed', 'Only a session may make this call')
}

const event = (
  call: Call,
  type: AccountEventType,
  userId: string,
  metadata: Readonly<Record<string, unknown>>,
): NewAccountEvent => ({
  type,
  userId,
  clientIp: call.clientIp,
  userAgent: call.userAgent,
  metadata: visitMetadata(call, metadata),
})

/** Ends the session that calls. */
export const signOut = async (deps: LoginDependencies, call: Call): Promise<Reply<204, undefined>> => {
  const userId = sessionUser(call)
  const { credentialId } = call.principal
  await deps.database.transaction(async sql => {
    if ((await endSession(sql, userId, credentialId)) !== undefined)
      await insertAccountEvent(sql, event(call, 'sign_out', userId, { session_id: credentialId }))
  })
  return { status: 204 }
}

/**
 * Ends one session of the caller's; an operator ends anybody's.
 * @throws DomainError `session_not_found`, also for sessions of others to whoever is no operator
 */
export const revokeSession = async (
  deps: LoginDependencies,
  call: Call,
  id: string,
): Promise<Reply<204, undefined>> => {
  const userId = sessionUser(call)
  const { isOperator } = call.principal
  await deps.database.transaction(async sql => {
    const ended = await (isOperator ? endAnySession(sql, id) : endSession(sql, userId, id))
    if (ended === undefined) throw new DomainError('session_not_found', 'You have no session with this id')
    const by = ended.userId === userId ? {} : { revoked_by: userId }
    await insertAccountEvent(sql, event(call, 'session_revoked', ended.userId, { session_id: id, ...by }))
  })
  return { status: 204 }
}

/** Ends all sessions of the caller's but the one that calls. */
export const revokeOtherSessions = async (
  deps: LoginDependencies,
  call: Call,
): Promise<Reply<200, { readonly revoked: number }>> => {
  const userId = sessionUser(call)
  const revoked = await deps.database.transaction(async sql => {
    const ended = await endOtherSessions(sql, userId, call.principal.credentialId)
    if (ended > 0) await insertAccountEvent(sql, event(call, 'session_revoked', userId, { others: ended }))
    return ended
  })
  return { status: 200, body: { revoked } }
}
