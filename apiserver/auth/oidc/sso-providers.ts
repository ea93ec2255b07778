/**
 * The identity providers of organizations. Tenants name them, so that each is taken for hostile: everything that its metadata name is
 * called through the same gate, which lets nothing pass but public addresses and networks that whoever runs this service allowed.
 */
import { authorities } from '../../../runtime/config/authorities.ts'
import { isLoopback, isReachable, literalHost } from '../../../runtime/net/reachable-addresses.ts'
import type { VouchedPerson } from './judge-id-token.ts'
import type { SsoClient } from './sso-client.ts'
import type { SsoChecks, SsoProvider, SsoProvidersOptions, SsoResponse } from './sso-provider.ts'

export class SsoProviders {
  readonly #options: SsoProvidersOptions
  #client: Promise<SsoClient> | undefined

  /** @throws ConfigError when the file of authorities cannot be used */
  constructor(options: SsoProvidersOptions) {
    this.#options = options
    if (options.caFile !== undefined) authorities('SERVICE_SSO_CA_FILE', options.caFile)
  }

  /**
   * Whether a URL may be called as far as it tells: https, or http on this machine where that is allowed; no address that must not
   * be called. A name is judged when it is resolved.
   */
  mayCall(url: URL): boolean {
    if (url.username !== '' || url.password !== '' || url.hash !== '') return false
    const address = literalHost(url)
    if (address !== undefined && !isReachable(address, this.#options.allowed)) return false
    return url.protocol === 'https:' || (url.protocol === 'http:' && address !== undefined && isLoopback(address))
  }

  /**
   * Where a browser goes to sign in.
   * @throws DomainError `identity_provider_unavailable`
   */
  async authorizationUrl(provider: SsoProvider, checks: SsoChecks): Promise<URL> {
    return (await this.#opened()).authorizationUrl(provider, checks)
  }

  /**
   * Takes a code to the provider.
   * @throws SsoRejection when it vouches for nobody, DomainError `identity_provider_unavailable`
   */
  async exchange(provider: SsoProvider, response: SsoResponse, checks: SsoChecks): Promise<VouchedPerson> {
    return (await this.#opened()).exchange(provider, response, checks)
  }

  /** Loaded by the first sign-in: most services have none, and would start later and be larger for it. */
  #opened(): Promise<SsoClient> {
    return (this.#client ??= import('./sso-client.ts').then(
      ({ SsoClient }) => new SsoClient({ ...this.#options, mayCall: url => this.mayCall(url) }),
    ))
  }
}
