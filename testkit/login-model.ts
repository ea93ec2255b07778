/** What the models of sessions, tokens and resets share: accounts of their own, and credentials judged as the rim judges them. */
import { randomUUID } from 'node:crypto'
import type { AsyncCommand } from 'fast-check'
import { accountTokens } from '../apiserver/auth/authenticate/account-token.ts'
import type { Authenticated, Authenticator } from '../apiserver/auth/authenticate/authenticator.ts'
import { sessions } from '../apiserver/auth/authenticate/session.ts'
import type { LastUsed } from '../apiserver/auth/last-used.ts'
import type { Call, Principal } from '../apiserver/commands/call.ts'
import { touchUsed } from '../apiserver/store/credentials.ts'
import { insertSession } from '../apiserver/store/login/sessions.ts'
import { newSessionToken } from '../lib/credentials/session-token.ts'
import { tokenDigest } from '../lib/credentials/token.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { silentLog } from '../runtime/log/log.ts'
import { type At, type MailWorld, type ModelGround, openCallOf } from './mail-model.ts'

export interface ModelAccount {
  readonly userId: string
  readonly email: string
}

/** An account with a password, made in one statement. */
export const modelAccount = async (
  { database, hashOf }: ModelGround,
  password: string,
  { isOperator = false } = {},
): Promise<ModelAccount> => {
  const account = { userId: newId('usr'), email: `${randomUUID()}@example.com` }
  await database.rows(
    `with u as (insert into users (user_id, email, name, is_operator) values ($1, $2, 'Ada', $3) returning user_id)
     insert into passwords (user_id, hash) select user_id, $4 from u`,
    [account.userId, account.email, isOperator, await hashOf(password)],
  )
  return account
}

/** A session of somebody, without a sign-in. */
export const modelSession = async (
  { database }: ModelGround,
  userId: string,
): Promise<{ readonly id: string; readonly token: string }> => {
  const { token, prefix, digest } = newSessionToken()
  const id = newId('ses')
  const kept = { tokenPrefix: prefix, digest, clientIp: '', userAgent: null }
  await insertSession(database, { id, userId, method: 'password', organizationId: null, ...kept })
  return { id, token }
}

const setDisabled = async ({ database }: ModelGround, { userId }: ModelAccount, disabled: boolean): Promise<void> => {
  const sql = 'update users set disabled_at = case when $2 then now() end where user_id = $1'
  await database.rows(sql, [userId, disabled])
}

/** The account of a sequence is disabled, or enabled again. */
export class Disable<
  Model extends { disabled: boolean },
  Real extends { readonly ground: ModelGround; readonly account: ModelAccount },
> implements AsyncCommand<Model, Real>
{
  readonly #disabled: boolean
  constructor(disabled: boolean) {
    this.#disabled = disabled
  }
  check = (model: Readonly<Model>): boolean => model.disabled !== this.#disabled
  toString = (): string => (this.#disabled ? 'the user is disabled' : 'the user is enabled')
  async run(model: Model, { ground, account }: Real): Promise<void> {
    await setDisabled(ground, account, this.#disabled)
    model.disabled = this.#disabled
  }
}

/** A call of somebody who was let in. */
export const callOf = (principal: Principal, more: Partial<Call> = {}): Call => ({
  ...openCallOf(),
  pathParams: {},
  idempotencyKey: randomUUID(),
  contentHash: Buffer.alloc(0),
  ...more,
  principal,
})

/** Looks a session's token up at a replica. That it was used is written before this returns, where it is worth it. */
export const sessionsOf = (world: MailWorld): ((at: At, token: string) => Promise<Authenticated | undefined>) => {
  const marked: [At, string][] = []
  const open = (at: At): Authenticator => {
    const { database, settings } = world.login[at]
    const lastUsed = { mark: (_table: string, id: string) => void marked.push([at, id]) } as unknown as LastUsed
    return sessions(database, lastUsed, settings.sessions, silentLog)
  }
  const authenticators = [open(0), open(1)] as const
  return async (at, token) => {
    const found = await authenticators[at].find({ token, digest: tokenDigest(token) }, undefined, openCallOf())
    const id = found?.principal.credentialId
    const used = marked.findIndex(([, each]) => each === id)
    if (used === -1 || id === undefined) return found
    marked.splice(used, 1)
    await world.login[at].database.transaction(sql => touchUsed(sql, 'sessions', [id]))
    return found
  }
}

/** Looks an account token up at a replica, for an organization. */
export const accountTokensOf = (
  world: MailWorld,
): ((at: At, token: string, org: string) => Promise<Principal | undefined>) => {
  const lastUsed = { mark: () => undefined } as unknown as LastUsed
  const authenticators = world.login.map(({ database }) => accountTokens(database, lastUsed))
  return async (at, token, org) =>
    (await authenticators[at]?.find({ token, digest: tokenDigest(token) }, org, openCallOf()))?.principal
}
