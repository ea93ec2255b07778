import { readArgon2Hash } from '../../lib/credentials/argon2-hash.ts'
import { isEmailAddress, normalEmail } from '../../lib/model/email-address.ts'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import type { ApiServerEnv } from './env.ts'

/** Who is to be administrator. Holds a hash: never logged. */
export interface AdministratorConfig {
  readonly email: string | undefined
  readonly passwordHash: string | undefined
}

/** @throws ConfigError, which never shows the hash */
export const administratorConfig = (env: ApiServerEnv): AdministratorConfig => {
  const { SERVICE_ADMIN_EMAIL: email, SERVICE_ADMIN_PASSWORD_HASH: passwordHash } = env
  if (email !== undefined && !isEmailAddress(email))
    throw new ConfigError('Cannot use SERVICE_ADMIN_EMAIL: expected an ASCII mail address')
  if (passwordHash !== undefined && email === undefined)
    throw new ConfigError('Cannot use SERVICE_ADMIN_PASSWORD_HASH: SERVICE_ADMIN_EMAIL says whose it is; set it too')
  if (passwordHash !== undefined && readArgon2Hash(passwordHash) === undefined)
    throw new ConfigError(
      'Cannot use SERVICE_ADMIN_PASSWORD_HASH: expected an argon2id PHC string, m=19456-262144, t=2-10, p=1-4, as node apiserver/hash-password.ts makes it of standard input; in a shell or Compose file mind that $ begins a variable',
    )
  return { email: email === undefined ? undefined : normalEmail(email), passwordHash }
}
