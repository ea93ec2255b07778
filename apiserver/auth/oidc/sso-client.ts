/** Speaks to identity providers of organizations, by the authorization-code flow with PKCE. */
import * as client from 'openid-client'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { authorities } from '../../../runtime/config/authorities.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { reachableLookup } from '../../../runtime/net/reachable-addresses.ts'
import { judgeIdToken, type VouchedPerson } from './judge-id-token.ts'
import { letFetchJudge, type ProviderFetch, providerFetch, reasonOf } from './provider-fetch.ts'
import {
  type SsoChecks,
  type SsoProvider,
  type SsoProvidersOptions,
  SsoRejection,
  type SsoResponse,
} from './sso-provider.ts'

/** For each call to a provider. */
const DEADLINE_MS = 3000
/** How long its metadata are believed; a failure, so that nobody can make us ask all the time. */
const KNOWN_MS = 10 * 60_000
const FAILED_MS = 5000
const MOST_KNOWN = 500
const SCOPE = 'openid profile email'

interface Known {
  readonly configuration: Promise<client.Configuration>
  until: number
}

export interface SsoClientOptions extends SsoProvidersOptions {
  /** Whether a URL may be called. */
  readonly mayCall: (url: URL) => boolean
  /** Monotonic, in milliseconds. */
  readonly now?: () => number
}

const unavailable = (): DomainError =>
  new DomainError('identity_provider_unavailable', 'The organization’s identity provider cannot be asked right now', {
    retryAfterSeconds: FAILED_MS / 1000,
  })

/** Faults of what was answered, and not of answering. */
const REJECTED_CODES = new Set([
  'OAUTH_AUTHORIZATION_RESPONSE_ERROR',
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
])

const clientAuthentication = (server: client.ServerMetadata, secret: string): client.ClientAuth => {
  const methods = server.token_endpoint_auth_methods_supported
  // What RFC 8414 says of a provider that does not.
  return methods === undefined || methods.includes('client_secret_basic')
    ? client.ClientSecretBasic(secret)
    : client.ClientSecretPost(secret)
}

class MismatchError extends Error {
  readonly code = 'ISSUER_MISMATCH'
}

export class SsoClient {
  readonly #mayCall: (url: URL) => boolean
  readonly #fetch: ProviderFetch
  readonly #log: Log
  readonly #now: () => number
  readonly #known = new Map<string, Known>()

  constructor({ allowed, caFile, log, resolve, mayCall, now = () => performance.now() }: SsoClientOptions) {
    this.#mayCall = mayCall
    this.#log = log
    this.#now = now
    this.#fetch = providerFetch({
      authorities: authorities('SERVICE_SSO_CA_FILE', caFile),
      deadlineMs: DEADLINE_MS,
      mayCall,
      lookup: reachableLookup(allowed, resolve),
      keepAlive: false,
    })
  }

  /**
   * Where a browser goes to sign in.
   * @throws DomainError `identity_provider_unavailable`
   */
  async authorizationUrl(provider: SsoProvider, checks: SsoChecks): Promise<URL> {
    const { redirectUri, state, nonce, codeVerifier, maxAgeSeconds } = checks
    try {
      const configuration = await this.#configuration(provider)
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds), prompt: 'login' }),
      })
      // A browser is sent there: never to a script.
      if (url.protocol === 'https:' || this.#mayCall(url)) return url
      throw new MismatchError('The provider’s page is none')
    } catch (error) {
      this.#note(provider, reasonOf(error))
      throw unavailable()
    }
  }

  /**
   * Takes a code to the provider.
   * @throws SsoRejection when it vouches for nobody, DomainError `identity_provider_unavailable`
   */
  async exchange(provider: SsoProvider, { code, iss }: SsoResponse, checks: SsoChecks): Promise<VouchedPerson> {
    const { redirectUri, state, nonce, codeVerifier, maxAgeSeconds } = checks
    const returned = new URL(redirectUri)
    for (const [name, value] of Object.entries({ code, state, iss }))
      if (value !== undefined) returned.searchParams.set(name, value)
    let claims: client.IDToken | undefined
    try {
      const tokens = await client.authorizationCodeGrant(await this.#configuration(provider), returned, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
        ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
      })
      claims = tokens.claims()
    } catch (error) {
      throw this.#failed(provider, error)
    }
    const person = judgeIdToken(claims ?? {}, new Date())
    if (typeof person === 'string') throw this.#failed(provider, new SsoRejection(person))
    return person
  }

  #failed(provider: SsoProvider, error: unknown): DomainError {
    const reason = error instanceof SsoRejection ? error.reason : reasonOf(error)
    this.#note(provider, reason)
    if (error instanceof SsoRejection) return error
    // An error that the token endpoint tells in the words of OAuth: the code is not good, or we are not who it knows.
    if (error instanceof client.ResponseBodyError) return error.status < 500 ? new SsoRejection(reason) : unavailable()
    return REJECTED_CODES.has(reason) ? new SsoRejection(reason) : unavailable()
  }

  #note({ issuer }: SsoProvider, reason: string): void {
    this.#log.warn({ issuer, reason }, 'Nobody was signed in by an organization’s identity provider')
  }

  #configuration(provider: SsoProvider): Promise<client.Configuration> {
    const now = this.#now()
    const known = this.#known.get(provider.revision)
    if (known !== undefined && now < known.until) return known.configuration
    this.#known.delete(provider.revision)
    const [oldest] = this.#known.keys()
    if (this.#known.size >= MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest)
    const asked: Known = { configuration: this.#discover(provider), until: now + KNOWN_MS }
    this.#known.set(provider.revision, asked)
    asked.configuration.catch(() => {
      asked.until = this.#now() + FAILED_MS
    })
    return asked.configuration
  }

  async #discover({ issuer, clientId, clientSecret }: SsoProvider): Promise<client.Configuration> {
    const timeout = DEADLINE_MS / 1000
    const url = new URL(issuer)
    const found = await client.discovery(url, clientId, undefined, client.None(), {
      [client.customFetch]: this.#fetch,
      timeout,
      execute: [letFetchJudge],
    })
    const server = found.serverMetadata()
    // The client makes exceptions for some; an issuer that is another one vouches for nobody here.
    if (new URL(server.issuer).href !== url.href) throw new MismatchError('The metadata are of another issuer')
    const authentication = clientAuthentication(server, clientSecret)
    const configuration = new client.Configuration({ ...server }, clientId, undefined, authentication)
    configuration[client.customFetch] = this.#fetch
    configuration.timeout = timeout
    letFetchJudge(configuration)
    // Signatures are checked too: that the token came over TLS would be enough by the standard.
    client.enableNonRepudiationChecks(configuration)
    return configuration
  }
}
