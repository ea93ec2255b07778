/**
 * `node apiserver/hash-password.ts < file`: prints the hash of a password, for SERVICE_ADMIN_PASSWORD_HASH. It comes by standard
 * input, since everybody on a machine sees the arguments of programs; one newline at its end is not of it.
 */
import { text } from 'node:stream/consumers'
import { Registry } from 'prom-client'
import { contextWords, passwordFault } from '../lib/credentials/password-rules.ts'
import { ConfigError } from '../runtime/config/parse-env.ts'
import { silentLog } from '../runtime/log/log.ts'
import { PasswordHasher } from './auth/passwords/password-hasher.ts'
import { PASSWORD_FAULTS } from './commands/login/new-password.ts'

const USAGE = 'usage: node apiserver/hash-password.ts < file, whose one line is the password'

const run = async (password: string): Promise<void> => {
  if (password === '') throw new ConfigError(USAGE)
  const fault = passwordFault(password, contextWords(null))
  if (fault !== undefined) throw new ConfigError(`Cannot hash this password: it ${PASSWORD_FAULTS[fault]}`)
  const hasher = new PasswordHasher(silentLog, new Registry())
  try {
    console.log(await hasher.hash(password))
  } finally {
    hasher.stop()
  }
}

try {
  if (process.argv.length > 2) throw new ConfigError(USAGE)
  await run((await text(process.stdin)).replace(/\r?\n$/, ''))
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exitCode = 1
}
