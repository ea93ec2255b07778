/** `make user EMAIL=…`: makes a user, or another token for one, and says who it is, and prints the token once; a running control plane or not. */
import { type MadeUser, makeUser } from '../apiserver/commands/make-user.ts'
import { Database } from '../apiserver/store/database.ts'
import { DomainError } from '../lib/errors/domain-error.ts'
import { silentLog } from '../runtime/log/log.ts'
import { BoxError } from './box-error.ts'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { LOCAL_OPERATOR, makeLocalOperatorToken } from './local-operator.ts'
import { runCommand } from './run-command.ts'
import { withServingDatabase } from './with-serving-database.ts'

const TOKEN_NAME = 'make user'

const makeToken = async (databaseUrl: string, email: string): Promise<MadeUser> => {
  if (email === LOCAL_OPERATOR)
    return makeLocalOperatorToken(databaseUrl, silentLog, { tokenName: TOKEN_NAME, replacesTokens: false })
  const database = new Database({ url: databaseUrl, log: silentLog, maxConnections: 1 })
  try {
    return await makeUser(database, { email, name: '', isOperator: false, tokenName: TOKEN_NAME })
  } catch (error) {
    if (error instanceof DomainError) throw new BoxError(`Cannot make "${email}": ${error.message}`)
    throw error
  } finally {
    await database.stop()
  }
}

/** The token alone goes to standard output, for `token=$(make -s user EMAIL=…)`; what people want to know goes beside it. */
const say = (email: string, { userId, created, token }: MadeUser): void => {
  console.error(`${created ? 'Made' : 'Another token for'} user:${userId} (${email})`)
  if (email !== LOCAL_OPERATOR)
    console.error(
      `Members see an organization: PUT /v1/organizations/{org}/members/${encodeURI(email)} {"role": "developer"}`,
    )
  console.error('Its token, shown once:')
  console.log(token)
}

await runCommand(async () => {
  const config = boxConfig(processEnvironment())
  const { email } = config
  if (email === undefined) throw new BoxError('Say whom to make: make user EMAIL=ada@example.com')
  await withServingDatabase(config, async url => say(email, await makeToken(url, email)))
})
