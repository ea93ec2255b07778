/** The account of whoever holds the machine: one for good, without an address, an operator, and owner of what the first start makes. */
import { type MadeUser, makeUser } from '../apiserver/commands/make-user.ts'
import { Database } from '../apiserver/store/database.ts'
import type { Log } from '../runtime/log/log.ts'

/** Its name, by which `make user` makes another token for it. */
export const LOCAL_OPERATOR = 'local-operator'

/**
 * A token of it; the account is made if need be. With `replacesTokens` earlier tokens of that name end: one that was lost, or
 * that a start which was cut short told nobody.
 */
export const makeLocalOperatorToken = async (
  databaseUrl: string,
  log: Log,
  token: { readonly tokenName: string; readonly replacesTokens: boolean },
): Promise<MadeUser> => {
  const database = new Database({ url: databaseUrl, log, maxConnections: 1 })
  try {
    return await makeUser(database, { email: undefined, name: LOCAL_OPERATOR, isOperator: true, ...token })
  } finally {
    await database.stop()
  }
}
