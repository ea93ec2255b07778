import { newPersonalToken } from '../../lib/credentials/token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../store/audit.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { insertToken, revokeTokensNamed } from '../store/tokens.ts'
import { insertUser, lockUserByEmail, lockUserByName, type UserRow } from '../store/users.ts'

export interface MakeUserInput {
  /** undefined: the one account of this name that no mail reaches. */
  readonly email: string | undefined
  readonly name: string
  readonly isOperator: boolean
  /** What its token is called. */
  readonly tokenName: string
  /** Whether the account's earlier tokens of that name end with it: a token that was lost, or never reached anybody. */
  readonly replacesTokens?: boolean
}

export interface MadeUser {
  readonly userId: string
  /** false: the account was there, and only got another token. */
  readonly created: boolean
  readonly tokenId: string
  /** The secret: show it once. */
  readonly token: string
}

// ASCII only, as in sign-in: case mapping of other letters makes two addresses one.
const EMAIL = /^[\x21-\x7e]{1,64}@[A-Za-z0-9.-]{1,255}$/

/**
 * Makes a user and a personal token, for whoever holds the machine: no HTTP route leads here. With an address, or a name
 * without one, that has an account it makes another token for it, which is how a lost one is replaced.
 * @throws DomainError `validation_failed` for an address that cannot be one
 */
export const makeUser = async (database: Database, input: MakeUserInput): Promise<MadeUser> => {
  if (input.email !== undefined && !EMAIL.test(input.email))
    throw new DomainError('validation_failed', 'The address is not an ASCII mail address')
  const { token, prefix, digest } = newPersonalToken()
  return database.transaction(async sql => {
    const { user, created } = await findOrInsert(sql, input)
    const tokenId = newId('tok')
    const { userId } = user
    const replaced = input.replacesTokens === true ? await revokeTokensNamed(sql, userId, input.tokenName) : []
    await insertToken(sql, {
      id: tokenId,
      userId,
      name: input.tokenName,
      digest,
      tokenPrefix: prefix,
      expiresAt: undefined,
    })
    for (const { id, name } of replaced)
      await insertAccountEvent(sql, {
        type: 'revoke_token',
        userId,
        clientIp: null,
        userAgent: undefined,
        metadata: { credential_kind: 'local', token_id: id, name },
      })
    await insertAccountEvent(sql, {
      type: created ? 'create_user' : 'create_token',
      userId,
      clientIp: null,
      userAgent: undefined,
      metadata: { credential_kind: 'local', token_id: tokenId, name: input.tokenName, is_operator: user.isOperator },
    })
    return { userId, created, tokenId, token }
  })
}

const findOrInsert = async (sql: Sql, input: MakeUserInput): Promise<{ user: UserRow; created: boolean }> => {
  const email = input.email?.toLowerCase() ?? null
  const user = { userId: newId('usr'), email, name: input.name, isOperator: input.isOperator }
  const inserted = await insertUser(sql, user)
  if (inserted !== undefined) return { user: inserted, created: true }
  const found = await (email === null ? lockUserByName(sql, input.name) : lockUserByEmail(sql, email))
  if (found === undefined) throw new DomainError('write_conflict', 'The account changed meanwhile; try again')
  if (found.disabledAt !== null) throw new DomainError('validation_failed', 'The account is disabled')
  return { user: found, created: false }
}
