/**
 * `node apiserver/new-user.ts [--operator] ada@example.com`: makes a user, or another token for one, and prints the token
 * once. For whoever may run programs beside the server, e.g. with kubectl exec; no HTTP route leads here.
 */
import { parseArgs } from 'node:util'
import { DomainError } from '../lib/errors/domain-error.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { silentLog } from '../runtime/log/log.ts'
import { makeUser } from './commands/make-user.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { Database } from './store/database.ts'

const USAGE = 'usage: node apiserver/new-user.ts [--operator] ada@example.com'

const run = async (email: string, isOperator: boolean): Promise<void> => {
  const { SERVICE_DATABASE_URL: url } = parseEnv(
    standaloneEnv.pick({ SERVICE_DATABASE_URL: true }),
    processEnvironment(),
  )
  const database = new Database({ url, log: silentLog, maxConnections: 1 })
  try {
    const { userId, created, token } = await makeUser(database, { email, name: '', isOperator, tokenName: 'new-user' })
    // The token alone goes to standard output, for token=$(…); what people want to know goes beside it.
    console.error(`${created ? 'Made' : 'Another token for'} user:${userId} (${email}). Its token, shown once:`)
    console.log(token)
  } finally {
    await database.stop()
  }
}

try {
  const { values, positionals } = parseArgs({ options: { operator: { type: 'boolean' } }, allowPositionals: true })
  const [email, ...more] = positionals
  if (email === undefined || more.length > 0) throw new ConfigError(USAGE)
  await run(email, values.operator === true)
} catch (error) {
  const told = error instanceof ConfigError || error instanceof DomainError || error instanceof TypeError
  console.error(told ? error.message : error)
  process.exitCode = 1
}
