/** The request limits: per credential, per address without a valid credential, mutations, connection reads, verifications. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { LimitSettings } from '../config/config.ts'
import type { Route } from '../contract/route.ts'
import { limitKey } from './client-address.ts'
import type { Exchange } from './exchange.ts'
import { RateLimiter, type RatePolicy, type Taken } from './rate-limiter.ts'

const refused = (policy: RatePolicy, taken: Taken): DomainError =>
  new DomainError('rate_limited', `Too many requests, wait ${taken.retrySeconds} s`, {
    details: { 'violated-policies': [policy.name] },
    retryAfterSeconds: taken.retrySeconds,
  })

export class Limits {
  readonly #requests: RateLimiter
  readonly #mutations: RateLimiter
  readonly #connectionReads: RateLimiter
  readonly #verifications: RateLimiter
  readonly #anonymous: RateLimiter
  readonly #onRefused: (policy: string) => void

  constructor(settings: LimitSettings, onRefused: (policy: string) => void = () => undefined) {
    const { burst } = settings
    this.#requests = new RateLimiter({ name: 'default', perMinute: settings.requestsPerMinute, burst })
    this.#mutations = new RateLimiter({ name: 'mutations', perMinute: settings.mutationsPerMinute, burst })
    this.#connectionReads = new RateLimiter({ name: 'connection', perMinute: settings.connectionReadsPerMinute, burst })
    this.#verifications = new RateLimiter({ name: 'verification', perMinute: settings.verificationsPerMinute, burst })
    this.#anonymous = new RateLimiter({ name: 'anonymous', perMinute: settings.anonymousPerMinute, burst })
    this.#onRefused = onRefused
  }

  /** Whether a credential was valid lately, so that its limit can refuse before it is looked up: never an authorization. */
  knows(key: string): boolean {
    return this.#requests.knows(key)
  }

  /** Counts a request without a valid credential against its address. @throws DomainError `rate_limited` */
  countFailure(exchange: Exchange): void {
    if (!this.#anonymous.enabled) return
    const taken = this.#anonymous.take(limitKey(exchange.clientIp))
    if (!taken.allowed) throw this.#refuse(exchange, this.#anonymous, taken)
  }

  /** Takes back what was counted against an address: its credential was valid after all. */
  forgiveFailure(exchange: Exchange): void {
    this.#anonymous.giveBack(limitKey(exchange.clientIp))
  }

  /** Counts a request of a valid credential. @throws DomainError `rate_limited` */
  take(exchange: Exchange, key: string, route: Route): void {
    this.#count(exchange, this.#requests, key)
    if (route.method !== 'get') this.#count(exchange, this.#mutations, key)
    if (route.rate === 'connection') this.#count(exchange, this.#connectionReads, key)
  }

  /**
   * Counts what costs an organization's whole history against it, whichever of its credentials asks: it can have as many as it
   * likes. Only once the caller may call: nobody else spends it. @throws DomainError `rate_limited`
   */
  takeOf(exchange: Exchange, organizationId: string, route: Route): void {
    if (route.rate === 'verification') this.#count(exchange, this.#verifications, organizationId)
  }

  #count(exchange: Exchange, limiter: RateLimiter, key: string): void {
    if (!limiter.enabled) return
    const taken = limiter.take(key)
    if (!taken.allowed) throw this.#refuse(exchange, limiter, taken)
    const policy = limiter.policyHeader
    const state = `"${limiter.policy.name}";r=${taken.remaining};t=${taken.resetSeconds}`
    const { rateLimitPolicy, rateLimit } = exchange
    exchange.rateLimitPolicy = rateLimitPolicy === undefined ? policy : `${rateLimitPolicy}, ${policy}`
    exchange.rateLimit = rateLimit === undefined ? state : `${rateLimit}, ${state}`
  }

  #refuse(exchange: Exchange, limiter: RateLimiter, taken: Taken): DomainError {
    this.#onRefused(limiter.policy.name)
    exchange.rateLimitPolicy = limiter.policyHeader
    exchange.rateLimit = `"${limiter.policy.name}";r=0;t=${Math.max(taken.retrySeconds, taken.resetSeconds)}`
    return refused(limiter.policy, taken)
  }
}
