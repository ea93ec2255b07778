/** An identity provider that says whose a token is (RFC 7662). Whatever goes wrong with it, no token is taken for good. */
import * as client from 'openid-client'
import { Counter, type Registry } from 'prom-client'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { authorities } from '../../../runtime/config/authorities.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { isSafeProviderUrl, type OidcConfig } from '../../config/oidc.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { type Identity, judgeIntrospection } from './judge-introspection.ts'
import { KnownTokens, type Learnt } from './known-tokens.ts'
import { letFetchJudge, type ProviderFetch, providerFetch, reasonOf } from './provider-fetch.ts'

const DEADLINE_MS = 3000
const SKEW_SECONDS = 30
/** How long a token that was revoked at the provider may still be taken for good, at most. */
export const KNOWN_FOR = { goodMs: 30_000, badMs: 5000, most: 10_000 }
const BREAKER = { failures: 5, withinMs: 10_000, openMs: 5000 }

export interface IdentityProviderOptions {
  readonly config: OidcConfig
  readonly log: Log
  readonly registry: Registry
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

const unavailable = (retryAfterSeconds: number, cause?: unknown): DomainError =>
  new DomainError('identity_provider_unavailable', 'The identity provider cannot be asked right now; try again', {
    retryAfterSeconds,
    cause,
  })

export class IdentityProvider {
  readonly #config: OidcConfig
  readonly #fetch: ProviderFetch
  readonly #log: Log
  readonly #now: () => number
  readonly #breaker = new CircuitBreaker(BREAKER)
  readonly #known: KnownTokens<Identity>
  readonly #asked: Counter<'outcome'>
  #discovered: Promise<client.Configuration> | undefined

  constructor({ config, log, registry, now = Date.now }: IdentityProviderOptions) {
    this.#config = config
    this.#fetch = providerFetch({
      authorities: authorities('SERVICE_OIDC_CA_FILE', config.caFile),
      deadlineMs: DEADLINE_MS,
      mayCall: isSafeProviderUrl,
      keepAlive: true,
    })
    this.#log = log
    this.#now = now
    this.#known = new KnownTokens(KNOWN_FOR, now)
    this.#asked = new Counter({
      name: 'svc_oidc_introspections_total',
      help: 'Questions to the identity provider about a token, by what came of them',
      labelNames: ['outcome'],
      registers: [registry],
    })
  }

  get issuer(): string {
    return this.#config.issuer
  }

  /**
   * Whose token it is; undefined: it is good for nobody.
   * @throws DomainError `identity_provider_unavailable`
   */
  identify(token: string, key: string): Promise<Identity | undefined> {
    return this.#known.find(key, () => this.#ask(token))
  }

  async #ask(token: string): Promise<Learnt<Identity> | undefined> {
    if (!this.#breaker.admits()) throw this.#refused(unavailable(this.#breaker.retrySeconds))
    let claims: client.IntrospectionResponse
    try {
      claims = await client.tokenIntrospection(await this.#configuration(), token, { token_type_hint: 'access_token' })
    } catch (error) {
      this.#breaker.failed()
      // Endpoints may have moved.
      this.#discovered = undefined
      this.#log.warn({ reason: reasonOf(error) }, 'The identity provider gave no answer about a token')
      throw this.#refused(unavailable(this.#breaker.retrySeconds))
    }
    this.#breaker.succeeded()
    return this.#judge(claims)
  }

  #refused(error: DomainError): DomainError {
    this.#asked.inc({ outcome: 'unavailable' })
    return error
  }

  #judge(claims: client.IntrospectionResponse): Learnt<Identity> | undefined {
    const { issuer, audience, operators } = this.#config
    const expected = { issuer, audience, operators, skewSeconds: SKEW_SECONDS }
    const judged = judgeIntrospection(claims, expected, this.#now() / 1000)
    if (typeof judged === 'string') {
      this.#asked.inc({ outcome: 'refused' })
      if (claims.active) this.#log.warn({ reason: judged }, 'An active token of the identity provider is none for us')
      return undefined
    }
    this.#asked.inc({ outcome: 'good' })
    return { value: judged, untilMs: (judged.expiresAt ?? Number.POSITIVE_INFINITY) * 1000 }
  }

  #configuration(): Promise<client.Configuration> {
    return (this.#discovered ??= this.#discover())
  }

  async #discover(): Promise<client.Configuration> {
    const { issuer, introspectionUrl, clientId, clientSecret } = this.#config
    const authentication = client.ClientSecretBasic(clientSecret)
    if (introspectionUrl === undefined)
      return client.discovery(new URL(issuer), clientId, undefined, authentication, {
        [client.customFetch]: this.#fetch,
        timeout: DEADLINE_MS / 1000,
        execute: [letFetchJudge],
      })
    const server = { issuer, introspection_endpoint: introspectionUrl }
    const configuration = new client.Configuration(server, clientId, undefined, authentication)
    configuration[client.customFetch] = this.#fetch
    configuration.timeout = DEADLINE_MS / 1000
    letFetchJudge(configuration)
    return configuration
  }
}
