import { resolve } from 'node:path'
import { ConfigError, type Environment, parseEnv } from '../../runtime/config/parse-env.ts'
import { boxEnv } from './env.ts'

/** What the single box was told, with meaning given to it. */
export interface BoxConfig {
  /** Absolute. */
  readonly home: string
  readonly postgres: {
    /** Ports that environments get. */
    readonly ports: { readonly first: number; readonly last: number }
    /** Where they listen, and the name that connection URIs carry. */
    readonly reach: { readonly listen: string; readonly host: string }
    readonly user: string | undefined
  }
  readonly keepDatabases: boolean
  /** The configured master key, not the one in effect. */
  readonly masterKey: string | undefined
  /** Separated by commas. */
  readonly previousMasterKeys: string
  readonly detach: boolean
  /** `make disable-user` enables instead. */
  readonly enable: boolean
  /** Whom `make user` makes, or `make disable-user` disables. */
  readonly email: string | undefined
}

/** Addresses that mean all of them: nobody can connect to one. */
const EVERYWHERE = new Set(['0.0.0.0', '::'])

/** @throws ConfigError naming the first variable that is wrong */
export const boxConfig = (environment: Environment): BoxConfig => {
  const env = parseEnv(boxEnv, environment)
  const [first = 0, last = 0] = env.SERVICE_POSTGRES_PORTS.split('-').map(Number)
  if (first < 1024 || last > 65_535 || first > last)
    throw new ConfigError(
      `Cannot use SERVICE_POSTGRES_PORTS: ${env.SERVICE_POSTGRES_PORTS} is not a range within 1024-65535`,
    )
  const listen = env.SERVICE_POSTGRES_LISTEN
  if (EVERYWHERE.has(listen) && env.SERVICE_POSTGRES_HOST === undefined)
    throw new ConfigError(
      `Cannot use SERVICE_POSTGRES_LISTEN: no client connects to ${listen}; set SERVICE_POSTGRES_HOST to this machine's name`,
    )
  return {
    home: resolve(env.SERVICE_HOME),
    postgres: {
      ports: { first, last },
      reach: { listen, host: env.SERVICE_POSTGRES_HOST ?? listen },
      user: env.SERVICE_POSTGRES_USER,
    },
    keepDatabases: env.SERVICE_KEEP_DATABASES === '1',
    masterKey: env.SERVICE_KMS_MASTER_KEY,
    previousMasterKeys: env.SERVICE_KMS_PREVIOUS_MASTER_KEYS,
    detach: env.DETACH === '1',
    enable: env.ENABLE === '1',
    email: env.EMAIL,
  }
}
