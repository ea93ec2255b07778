/**
 * `node apiserver/disable-user.ts [--enable] ada@example.com`, or `user:<id>`: disables an account, or enables it again. For
 * whoever may run programs beside the server, e.g. with kubectl exec; no HTTP route leads here.
 */
import { parseArgs } from 'node:util'
import { DomainError } from '../lib/errors/domain-error.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { silentLog } from '../runtime/log/log.ts'
import { disabledLine, disableUser } from './commands/disable-user.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { Database } from './store/database.ts'

const USAGE = 'usage: node apiserver/disable-user.ts [--enable] ada@example.com'

const run = async (who: string, disabled: boolean): Promise<void> => {
  const { SERVICE_DATABASE_URL: url } = parseEnv(
    standaloneEnv.pick({ SERVICE_DATABASE_URL: true }),
    processEnvironment(),
  )
  const database = new Database({ url, log: silentLog, maxConnections: 1 })
  try {
    console.log(disabledLine({ who, disabled }, await disableUser(database, { who, disabled })))
  } finally {
    await database.stop()
  }
}

try {
  const { values, positionals } = parseArgs({ options: { enable: { type: 'boolean' } }, allowPositionals: true })
  const [who, ...more] = positionals
  if (who === undefined || more.length > 0) throw new ConfigError(USAGE)
  await run(who, values.enable !== true)
} catch (error) {
  const told = error instanceof ConfigError || error instanceof DomainError || error instanceof TypeError
  console.error(told ? error.message : error)
  process.exitCode = 1
}
