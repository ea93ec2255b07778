import { resourcesSchema } from '../../crds/environment.ts'
import { ConfigError, type Environment, parseEnv } from '../../runtime/config/parse-env.ts'
import type { BackoffPolicy } from '../../runtime/controller/backoff.ts'
import type { DefaultFigures, Figures } from '../environment/defaults.ts'
import type { Limits } from '../environment/limits.ts'
import { operatorEnv } from './env.ts'

/** What the operator was told, with meaning given to it. */
export interface OperatorConfig {
  readonly namespace: string
  readonly concurrency: number
  readonly resyncMs: number
  /** Environments are read from a cache that is no older than our own writes, and not from the store at every look. */
  readonly readsCache: boolean
  readonly limits: Limits
  readonly keepDeletionRecordsMs: number
  readonly defaults: DefaultFigures
  /** Waits between attempts to reach the store again; by default those for a store that thousands share. */
  readonly reconnect?: BackoffPolicy
  /** How long a watch may be silent until it is opened anew. */
  readonly watchIdleMs?: number
}

/** A preview is swept this long after its expiry: a renewal that was acknowledged in the last second is seen before. */
const EXPIRY_GRACE_MS = 60_000
const DAY_MS = 86_400_000

/**
 * How often things are looked at that nobody said anything about: what tells by itself is asked less often. And after how many
 * starts in vain an environment is failed: kubelet doubles its waits between them, so that the fourth comes after 70 seconds, and
 * a fifth would after two and a half minutes.
 */
const PACE = {
  local: { resyncSeconds: 30, proofSeconds: 300, proofAtStart: true, readsCache: false, maxFailedStarts: 5 },
  kubernetes: { resyncSeconds: 600, proofSeconds: 3600, proofAtStart: false, readsCache: true, maxFailedStarts: 4 },
} as const

/** The operator's configuration, for where its databases run. @throws ConfigError */
export const operatorConfig = (environment: Environment, place: keyof typeof PACE = 'local'): OperatorConfig => {
  const { resyncSeconds, proofSeconds, proofAtStart, readsCache, maxFailedStarts } = PACE[place]
  const env = parseEnv(operatorEnv, environment)
  return Object.freeze({
    namespace: env.SERVICE_OPERATOR_NAMESPACE,
    readsCache,
    concurrency: env.SERVICE_OPERATOR_CONCURRENCY,
    resyncMs: (env.SERVICE_OPERATOR_RESYNC_SECONDS ?? resyncSeconds) * 1000,
    limits: {
      attemptDeadlineMs: env.SERVICE_OPERATOR_ATTEMPT_SECONDS * 1000,
      proofEveryMs: (env.SERVICE_OPERATOR_PROOF_SECONDS ?? proofSeconds) * 1000,
      proofAtStart,
      maxFailedStarts,
      expiryGraceMs: EXPIRY_GRACE_MS,
    },
    keepDeletionRecordsMs: env.SERVICE_DELETION_RECORD_DAYS * DAY_MS,
    defaults: {
      production: figuresOf('SERVICE_DEFAULT_PRODUCTION_FIGURES', env.SERVICE_DEFAULT_PRODUCTION_FIGURES),
      staging: figuresOf('SERVICE_DEFAULT_STAGING_FIGURES', env.SERVICE_DEFAULT_STAGING_FIGURES),
      preview: figuresOf('SERVICE_DEFAULT_PREVIEW_FIGURES', env.SERVICE_DEFAULT_PREVIEW_FIGURES),
    },
  })
}

/** `text` has passed the pattern in env.ts: four names, each with a value. */
const figuresOf = (variable: string, text: string): Figures => {
  const { maxConnections, ...rest } = Object.fromEntries(
    text.split(',').map((part): [string, string] => {
      const [name = '', value = ''] = part.split('=')
      return [name, value]
    }),
  )
  const parsed = resourcesSchema.safeParse({ ...rest, maxConnections: Number(maxConnections) })
  if (parsed.success) return parsed.data
  const field = parsed.error.issues[0]?.path.join('.') ?? 'a figure'
  throw new ConfigError(`Cannot use ${variable}: ${field} is out of form or range, "${text}"`)
}
