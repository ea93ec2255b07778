/** Who says who people are: the built-in login, or an identity provider. */
import { ConfigError } from '../../runtime/config/parse-env.ts'
import type { AuthMode } from './auth-modes.ts'
import type { ApiServerEnv } from './env.ts'

/** An identity provider that is asked about tokens (RFC 7662). */
export interface OidcConfig {
  readonly mode: 'oidc'
  readonly issuer: string
  /** undefined: what the issuer's metadata say. */
  readonly introspectionUrl: string | undefined
  readonly clientId: string
  /** A secret. */
  readonly clientSecret: string
  /** Whom tokens have to be meant for. */
  readonly audience: string
  readonly caFile: string | undefined
  /** Claims that make whoever has one of them an operator. */
  readonly operators: readonly { readonly name: string; readonly value: string }[]
}

export type AuthConfig = { readonly mode: 'builtin' } | OidcConfig

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** Whether a provider's URL may be called: https, or http that never leaves this machine. */
export const isSafeProviderUrl = (url: URL): boolean =>
  (url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname))) &&
  url.username === '' &&
  url.password === ''

const refuse = (variable: string, why: string): ConfigError => new ConfigError(`Cannot use ${variable}: ${why}`)

const needed = (env: ApiServerEnv, variable: keyof ApiServerEnv & `SERVICE_OIDC_${string}`): string => {
  const value = env[variable]
  if (typeof value === 'string') return value
  throw refuse(variable, 'it must be set where SERVICE_AUTH_MODE is oidc; SERVICE_AUTH_MODE=builtin needs no provider')
}

const providerUrl = (variable: string, text: string): string => {
  const url = new URL(text)
  if (!isSafeProviderUrl(url) || url.hash !== '')
    throw refuse(variable, 'expected an https:// URL without a password in it; http:// only on this machine')
  return text
}

const operatorClaims = (text: string): OidcConfig['operators'] =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
    .map(part => {
      const [, name, value] = /^([^=\s]+)=(.+)$/.exec(part) ?? []
      if (name === undefined || value === undefined)
        throw refuse('SERVICE_OIDC_OPERATOR_CLAIMS', 'expected claims and values, e.g. groups=platform-admins')
      return { name, value }
    })

/** @param preset the mode where the environment names none @throws ConfigError */
export const authConfig = (env: ApiServerEnv, preset: AuthMode): AuthConfig => {
  if ((env.SERVICE_AUTH_MODE ?? preset) === 'builtin') return { mode: 'builtin' }
  const clientId = needed(env, 'SERVICE_OIDC_CLIENT_ID')
  const introspection = env.SERVICE_OIDC_INTROSPECTION_URL
  return {
    mode: 'oidc',
    issuer: providerUrl('SERVICE_OIDC_ISSUER_URL', needed(env, 'SERVICE_OIDC_ISSUER_URL')),
    introspectionUrl:
      introspection === undefined ? undefined : providerUrl('SERVICE_OIDC_INTROSPECTION_URL', introspection),
    clientId,
    clientSecret: needed(env, 'SERVICE_OIDC_CLIENT_SECRET'),
    audience: env.SERVICE_OIDC_AUDIENCE ?? clientId,
    caFile: env.SERVICE_OIDC_CA_FILE,
    operators: operatorClaims(env.SERVICE_OIDC_OPERATOR_CLAIMS),
  }
}
