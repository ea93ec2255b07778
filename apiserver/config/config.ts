/** What the API server was told, with meaning given to it: one frozen value, bad combinations refused. */
import type { z } from 'zod'
import type { resourcesSchema } from '../../crds/environment.ts'
import type { EnvironmentKind } from '../../lib/model/environment.ts'
import { type ListenAddress, listenAddress } from '../../runtime/config/listen-address.ts'
import { ConfigError, type Environment, parseEnv } from '../../runtime/config/parse-env.ts'
import type { LogLevel } from '../../runtime/log/json-log.ts'
import { type AdministratorConfig, administratorConfig } from './administrator.ts'
import type { AuthMode } from './auth-modes.ts'
import { type ApiServerEnv, apiServerEnv } from './env.ts'
import { type MailConfig, mailConfig } from './mail.ts'
import { type AuthConfig, authConfig } from './oidc.ts'
import { parseNetworks, type TrustedNetworks } from './trusted-networks.ts'

/** The built-in login. Lives are in seconds. */
export interface LoginConfig {
  readonly maxFailures: number
  readonly lockoutSeconds: number
  readonly sessions: { readonly idle: number; readonly absolute: number; readonly rotate: number }
}

/** Identity providers of organizations. */
export interface SsoConfig {
  /** Where they may be beside public addresses. */
  readonly allowed: TrustedNetworks
  readonly caFile: string | undefined
}

/** The figures of an environment’s plan. */
type Resources = z.infer<typeof resourcesSchema>

/** What everybody gets, and what it costs. An absent cap is none. */
export interface PlanConfig {
  readonly name: string
  readonly priceCents: number
  readonly currency: string
  readonly resources: Readonly<Record<EnvironmentKind, Resources>>
  readonly caps: {
    readonly projectsPerOrganization: number | undefined
    readonly environmentsPerOrganization: number | undefined
    readonly environmentsPerProject: number | undefined
  }
}

/** Requests per minute; 0 switches a limit off. */
export interface LimitSettings {
  readonly requestsPerMinute: number
  readonly mutationsPerMinute: number
  readonly connectionReadsPerMinute: number
  readonly verificationsPerMinute: number
  readonly anonymousPerMinute: number
  readonly burst: number
}

/** How long a stop may take: `graceMs` for connections to be told and load balancers to look elsewhere, then `drainMs` for what is in flight. */
export interface StopDelays {
  readonly graceMs: number
  readonly drainMs: number
}

export interface ApiServerConfig {
  readonly listen: ListenAddress
  readonly metricsListen: ListenAddress
  /** Without a slash at its end; empty: links in problems are relative. */
  readonly publicUrl: string
  /** Without a slash at its end; empty: no console is said, `apiserver/links.ts` tells where links lead then. */
  readonly consoleUrl: string
  /** undefined: no mail. Holds secrets: never logged. */
  readonly mail: MailConfig | undefined
  /** Holds a secret: never logged. */
  readonly auth: AuthConfig
  readonly sso: SsoConfig
  /** Holds a hash: never logged. */
  readonly administrator: AdministratorConfig
  readonly logLevel: LogLevel
  readonly trustedProxies: TrustedNetworks
  readonly publicSignup: boolean
  readonly previewDefaultTtlHours: number
  readonly operationDeadlineSeconds: number
  readonly operatorNamespace: string
  readonly databasePoolMax: number
  readonly databaseTimeoutMs: number
  readonly limits: LimitSettings
  readonly login: LoginConfig
  readonly stop: StopDelays
  readonly plan: PlanConfig
}

const networks = (variable: string, text: string): TrustedNetworks => {
  const parts = text.split(',').map(part => part.trim())
  try {
    return parseNetworks(parts.filter(part => part !== ''))
  } catch {
    throw new ConfigError(`Cannot use ${variable}: expected CIDRs separated by commas, e.g. 10.0.0.0/8`)
  }
}

const capOf = (value: number): number | undefined => (value === 0 ? undefined : value)

const planOf = (env: ApiServerEnv): PlanConfig => {
  const small: Resources = {
    cpu: env.SERVICE_PLAN_CPU,
    memory: env.SERVICE_PLAN_MEMORY,
    storage: env.SERVICE_PLAN_STORAGE,
    maxConnections: env.SERVICE_PLAN_CONNECTIONS,
  }
  const production: Resources = {
    cpu: env.SERVICE_PLAN_PRODUCTION_CPU,
    memory: env.SERVICE_PLAN_PRODUCTION_MEMORY,
    storage: env.SERVICE_PLAN_PRODUCTION_STORAGE,
    maxConnections: env.SERVICE_PLAN_PRODUCTION_CONNECTIONS,
  }
  return {
    name: env.SERVICE_PLAN_NAME,
    priceCents: env.SERVICE_PLAN_PRICE_CENTS,
    currency: env.SERVICE_PLAN_CURRENCY,
    resources: { production, staging: small, preview: small },
    caps: {
      projectsPerOrganization: capOf(env.SERVICE_PLAN_MAX_PROJECTS),
      environmentsPerOrganization: capOf(env.SERVICE_PLAN_MAX_ENVIRONMENTS),
      environmentsPerProject: capOf(env.SERVICE_PLAN_MAX_PROJECT_ENVIRONMENTS),
    },
  }
}

/** @param authMode where the environment names none @throws ConfigError */
export const apiServerConfig = (environment: Environment, authMode: AuthMode = 'builtin'): ApiServerConfig => {
  const env = parseEnv(apiServerEnv, environment)
  return Object.freeze<ApiServerConfig>({
    listen: listenAddress('SERVICE_LISTEN', env.SERVICE_LISTEN),
    metricsListen: listenAddress('SERVICE_METRICS_LISTEN', env.SERVICE_METRICS_LISTEN),
    publicUrl: (env.SERVICE_PUBLIC_URL ?? '').replace(/\/+$/, ''),
    consoleUrl: (env.SERVICE_CONSOLE_URL ?? '').replace(/\/+$/, ''),
    mail: mailConfig(env),
    auth: authConfig(env, authMode),
    sso: {
      allowed: networks('SERVICE_SSO_ALLOWED_CIDRS', env.SERVICE_SSO_ALLOWED_CIDRS),
      caFile: env.SERVICE_SSO_CA_FILE,
    },
    administrator: administratorConfig(env),
    logLevel: env.SERVICE_LOG_LEVEL,
    trustedProxies: networks('SERVICE_TRUSTED_PROXIES', env.SERVICE_TRUSTED_PROXIES),
    publicSignup: env.SERVICE_PUBLIC_SIGNUP === '1',
    previewDefaultTtlHours: env.SERVICE_PREVIEW_DEFAULT_TTL_HOURS,
    operationDeadlineSeconds: env.SERVICE_OPERATION_DEADLINE_SECONDS,
    operatorNamespace: env.SERVICE_OPERATOR_NAMESPACE,
    databasePoolMax: env.SERVICE_DATABASE_POOL_MAX,
    databaseTimeoutMs: env.SERVICE_DATABASE_TIMEOUT_SECONDS * 1000,
    limits: {
      requestsPerMinute: env.SERVICE_RATE_LIMIT_PER_MINUTE,
      mutationsPerMinute: env.SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE,
      connectionReadsPerMinute: env.SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE,
      verificationsPerMinute: env.SERVICE_RATE_LIMIT_VERIFY_PER_MINUTE,
      anonymousPerMinute: env.SERVICE_RATE_LIMIT_ANONYMOUS_PER_MINUTE,
      burst: env.SERVICE_RATE_LIMIT_BURST,
    },
    login: {
      maxFailures: env.SERVICE_LOGIN_MAX_FAILURES,
      lockoutSeconds: env.SERVICE_LOGIN_LOCKOUT_SECONDS,
      sessions: {
        idle: env.SERVICE_SESSION_IDLE_SECONDS,
        absolute: env.SERVICE_SESSION_ABSOLUTE_SECONDS,
        rotate: env.SERVICE_SESSION_ROTATE_SECONDS,
      },
    },
    stop: { graceMs: env.SERVICE_STOP_GRACE_SECONDS * 1000, drainMs: env.SERVICE_STOP_DRAIN_SECONDS * 1000 },
    plan: planOf(env),
  })
}
