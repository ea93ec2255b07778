import { CURRENT_COST, isCurrent } from '../../lib/credentials/argon2-hash.ts'
import { isEmailAddress, normalEmail } from '../../lib/model/email-address.ts'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import type { ApiServerEnv } from './env.ts'

/** Who is to be administrator. Holds a hash: never logged. */
export interface AdministratorConfig {
  readonly email: string | undefined
  readonly passwordHash: string | undefined
}

const { memory, passes, lanes } = CURRENT_COST
const EXPECTED = `an argon2id PHC string with m=${memory},t=${passes},p=${lanes}`

/** @throws ConfigError, which never shows the hash */
export const administratorConfig = (env: ApiServerEnv): AdministratorConfig => {
  const { SERVICE_ADMIN_EMAIL: email, SERVICE_ADMIN_PASSWORD_HASH: passwordHash } = env
  if (email !== undefined && !isEmailAddress(email))
    throw new ConfigError('Cannot use SERVICE_ADMIN_EMAIL: expected an ASCII mail address')
  if (passwordHash !== undefined && email === undefined)
    throw new ConfigError('Cannot use SERVICE_ADMIN_PASSWORD_HASH: SERVICE_ADMIN_EMAIL says whose it is; set it too')
  // Of another cost, it would tell by the time of each refusal that there is this account.
  if (passwordHash !== undefined && !isCurrent(passwordHash))
    throw new ConfigError(
      `Cannot use SERVICE_ADMIN_PASSWORD_HASH: expected ${EXPECTED}, as node apiserver/hash-password.ts makes it of standard input; in a shell or Compose file mind that $ begins a variable`,
    )
  return { email: email === undefined ? undefined : normalEmail(email), passwordHash }
}
