/** What a sign-in at an organization's identity provider is made of, for those who begin and finish one. */
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { Log } from '../../../runtime/log/log.ts'
import type { Networks, ResolveName } from '../../../runtime/net/reachable-addresses.ts'

/** How providers are reached. */
export interface SsoProvidersOptions {
  readonly allowed: Networks
  readonly caFile: string | undefined
  readonly log: Log
  /** How names are resolved; by the name server. */
  readonly resolve?: ResolveName
}

/** A provider that an organization configured. */
export interface SsoProvider {
  /** Another with each change of the configuration. */
  readonly revision: string
  readonly issuer: string
  readonly clientId: string
  /** A secret. */
  readonly clientSecret: string
}

/** What a sign-in is bound to, of both of its steps. */
export interface SsoChecks {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  /** The person has to have proved who they are within so many seconds; undefined: whenever. */
  readonly maxAgeSeconds: number | undefined
}

/** What a provider sends back by way of the browser. */
export interface SsoResponse {
  readonly code: string
  readonly iss: string | undefined
}

/** The provider answered, and what it answered lets nobody in: why, in a word for logs; callers are told that it does not. */
export class SsoRejection extends DomainError {
  readonly reason: string
  constructor(reason: string) {
    super('sso_rejected', 'The organization’s identity provider did not vouch for anybody')
    this.reason = reason
  }
}
