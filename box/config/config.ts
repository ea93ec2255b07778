import { resolve } from 'node:path'
import { BoxError } from '../box-error.ts'
import { boxEnv } from './env.ts'

/** What the single box was told, with meaning given to it. */
export interface BoxConfig {
  /** Absolute. */
  readonly home: string
  readonly postgres: {
    readonly firstPort: number
    readonly lastPort: number
    readonly listen: string
    /** The name that connection URIs carry. */
    readonly host: string
    readonly user: string | undefined
  }
  readonly keepDatabases: boolean
  /** The configured master key, not the one in effect. */
  readonly masterKey: string | undefined
  readonly detach: boolean
}

/** @throws BoxError naming the first variable that is wrong */
export const boxConfig = (environment: Readonly<Record<string, string | undefined>>): BoxConfig => {
  const parsed = boxEnv.safeParse(environment)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new BoxError(`Cannot use ${issue?.path.join('.') ?? 'the environment'}: ${issue?.message ?? 'invalid'}`)
  }
  const env = parsed.data
  const [firstPort = 0, lastPort = 0] = env.SERVICE_POSTGRES_PORTS.split('-').map(Number)
  if (firstPort < 1024 || lastPort > 65_535 || firstPort > lastPort)
    throw new BoxError(
      `Cannot use SERVICE_POSTGRES_PORTS: ${env.SERVICE_POSTGRES_PORTS} is not a range within 1024-65535`,
    )
  return {
    home: resolve(env.SERVICE_HOME),
    postgres: {
      firstPort,
      lastPort,
      listen: env.SERVICE_POSTGRES_LISTEN,
      host: env.SERVICE_POSTGRES_HOST ?? env.SERVICE_POSTGRES_LISTEN,
      user: env.SERVICE_POSTGRES_USER,
    },
    keepDatabases: env.SERVICE_KEEP_DATABASES === '1',
    masterKey: env.SERVICE_KMS_MASTER_KEY,
    detach: env.DETACH === '1',
  }
}
