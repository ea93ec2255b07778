import { resolve } from 'node:path'
import { BoxError } from '../box-error.ts'
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
  readonly detach: boolean
  /** Whom `make user` makes. */
  readonly email: string | undefined
}

/** Addresses that mean all of them: nobody can connect to one. */
const EVERYWHERE = new Set(['0.0.0.0', '::'])

/** @throws BoxError naming the first variable that is wrong */
export const boxConfig = (environment: Readonly<Record<string, string | undefined>>): BoxConfig => {
  // An empty variable counts as none, as shells and unit files write it.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = boxEnv.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new BoxError(`Cannot use ${issue?.path.join('.') ?? 'the environment'}: ${issue?.message ?? 'invalid'}`)
  }
  const env = parsed.data
  const [first = 0, last = 0] = env.SERVICE_POSTGRES_PORTS.split('-').map(Number)
  if (first < 1024 || last > 65_535 || first > last)
    throw new BoxError(
      `Cannot use SERVICE_POSTGRES_PORTS: ${env.SERVICE_POSTGRES_PORTS} is not a range within 1024-65535`,
    )
  const listen = env.SERVICE_POSTGRES_LISTEN
  if (EVERYWHERE.has(listen) && env.SERVICE_POSTGRES_HOST === undefined)
    throw new BoxError(`Cannot tell clients to connect to ${listen}: set SERVICE_POSTGRES_HOST to this machine's name`)
  return {
    home: resolve(env.SERVICE_HOME),
    postgres: {
      ports: { first, last },
      reach: { listen, host: env.SERVICE_POSTGRES_HOST ?? listen },
      user: env.SERVICE_POSTGRES_USER,
    },
    keepDatabases: env.SERVICE_KEEP_DATABASES === '1',
    masterKey: env.SERVICE_KMS_MASTER_KEY,
    detach: env.DETACH === '1',
    email: env.EMAIL,
  }
}
