/** Finds out who calls, and counts them: the one way into every route that is not public. */

import { tokenDigest } from '../../lib/credentials/token.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Authenticated, Authenticator, PresentedToken } from '../auth/authenticate/authenticator.ts'
import { bearerToken, invalidToken } from '../auth/authenticate/bearer.ts'
import type { Principal } from '../commands/call.ts'
import type { Route } from '../contract/route.ts'
import type { Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'

const MAX_AGENTS = 10_000

/** A credential at the gate. */
export interface Presented extends PresentedToken {
  readonly authenticator: Authenticator
  /** What limits count it by: its digest, so that no secret is kept. */
  readonly limitKey: string
}

export class Admission {
  readonly #authenticators: readonly Authenticator[]
  readonly #limits: Limits
  /** Agents' tokens that were valid lately, by what limits count them by: for their history, never an authorization. */
  readonly #agents = new Map<string, string>()

  constructor(authenticators: readonly Authenticator[], limits: Limits) {
    this.#authenticators = authenticators
    this.#limits = limits
  }

  /**
   * The cheap gate, before a body is read and before any I/O. What has no checksum of ours ends here; what has one gets
   * its one indexed read, however much junk its address sent: a valid credential is never locked out by a neighbour's.
   * @throws DomainError `unauthenticated`, `invalid_token`, `rate_limited`
   */
  present(exchange: Exchange, authorization: string | undefined): Presented {
    const token = this.#counted(exchange, () => bearerToken(authorization))
    const authenticator = this.#authenticators.find(candidate => candidate.accepts(token))
    if (authenticator === undefined) throw this.#failed(exchange, invalidToken())
    const digest = tokenDigest(token)
    return { token, digest, authenticator, limitKey: digest.toString('latin1') }
  }

  /**
   * Who it is, with their role in the organization where one is named.
   * @throws DomainError `invalid_token`, `rate_limited`
   */
  async principal(
    exchange: Exchange,
    presented: Presented,
    route: Route,
    organizationId: string | undefined,
  ): Promise<Principal> {
    const known = this.#limits.knows(presented.limitKey)
    // Also when the limit or a revocation ends the call before its token is looked up.
    exchange.agentTokenId = this.#agents.get(presented.limitKey)
    if (known) this.#limits.take(exchange, presented.limitKey, route)
    const found = await this.#find(exchange, presented, organizationId, known)
    const { principal, headers } = found
    exchange.credentialHeaders = headers
    exchange.credentialId = principal.credentialId
    if (principal.kind === 'agent') this.#noteAgent(exchange, presented.limitKey, principal.credentialId)
    if (!known) this.#limits.take(exchange, presented.limitKey, route)
    return principal
  }

  /** Counts what is limited for an organization, whoever of it calls; after they were let in. @throws DomainError `rate_limited` */
  countAllowed(exchange: Exchange, route: Route, organizationId: string | undefined): void {
    if (organizationId !== undefined) this.#limits.takeOf(exchange, organizationId, route)
  }

  /** Junk would become questions to another service: it counts against its address before one is asked. */
  async #find(
    exchange: Exchange,
    presented: Presented,
    organizationId: string | undefined,
    known: boolean,
  ): Promise<Authenticated> {
    const { authenticator } = presented
    const countsFirst = authenticator.asksOthers === true && !known
    if (countsFirst) this.#limits.countFailure(exchange)
    let isJunk = false
    try {
      const found = await authenticator.find(presented, organizationId, exchange)
      isJunk = found === undefined
      if (found === undefined) throw countsFirst ? invalidToken() : this.#failed(exchange, invalidToken())
      return found
    } finally {
      if (countsFirst && !isJunk) this.#limits.forgiveFailure(exchange)
    }
  }

  #noteAgent(exchange: Exchange, limitKey: string, tokenId: string): void {
    exchange.agentTokenId = tokenId
    if (this.#agents.size >= MAX_AGENTS) this.#agents.clear()
    this.#agents.set(limitKey, tokenId)
  }

  #counted<T>(exchange: Exchange, read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw error instanceof DomainError ? this.#failed(exchange, error) : error
    }
  }

  /** Counts a failure against the address: the error to throw is its own, or the limit's. */
  #failed(exchange: Exchange, error: DomainError): DomainError {
    try {
      this.#limits.countFailure(exchange)
      return error
    } catch (limited) {
      return limited instanceof DomainError ? limited : error
    }
  }
}
