/** Settings from environment variables: one way to read them, one error for what cannot be used. */
import type { z } from 'zod'

/** A setting that cannot be used: the message names the variable and says what was expected. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** Variables by name, such as those of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The variables of a schema. An empty one counts as unset, as shells and unit files write it. @throws ConfigError */
export const parseEnv = <S extends z.ZodObject>(schema: S, environment: Environment): z.output<S> => {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const missing = issue?.code === 'invalid_type' && issue.input === undefined
  throw new ConfigError(
    `Cannot use ${issue?.path.join('.') ?? 'the environment'}: ${missing ? 'it must be set' : (issue?.message ?? 'invalid')}`,
  )
}
