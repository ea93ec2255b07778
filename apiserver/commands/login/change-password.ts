import type { ChangePasswordBody } from '../../contract/login/passwords.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { holdPasswordAlone } from '../../store/login/passwords.ts'
import type { Call, Reply } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import { invalidCredentials, provePassword } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { hashNewPassword, replacePassword } from './new-password.ts'
import { steppingUp } from './prove-again.ts'

/**
 * Changes the caller's password. All other sessions end, and the one that calls gets its next token at once.
 * @throws DomainError `invalid_credentials`, `password_not_allowed`, `sign_in_rate_limited`, `login_busy`
 */
export const changePassword = async (
  deps: LoginDependencies,
  call: Call,
  { current_password: current, new_password: next }: ChangePasswordBody,
): Promise<Reply<204, undefined>> => {
  const account = await provePassword(deps, call, current)
  const { userId } = account
  const hash = await hashNewPassword(deps, account, next, 'new_password')
  const { principal } = call
  await steppingUp(deps, call, async sql => {
    // Somebody changed it meanwhile: what was proved holds no more.
    if (!(await holdPasswordAlone(sql, userId, account.passwordChangedAt))) throw invalidCredentials()
    await replacePassword(sql, account, hash, principal.credentialId)
    return insertAccountEvent(sql, {
      type: 'password_changed',
      userId,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { session_id: principal.credentialId }),
    })
  })
  return { status: 204 }
}
