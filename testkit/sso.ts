/** Signing in at a real identity provider of an organization, as a browser and the console's server do. */
import assert from 'node:assert/strict'
import type { StartSsoBody } from '../apiserver/contract/login/sso.ts'
import { ApiClient } from './api-client.ts'
import type { ApiCaller, TestApiServer } from './api-server.ts'
import { fromAnywhere, type TestSession } from './sign-in.ts'

const CONSOLE_URL = 'https://console.example.com'
export const SSO_CLIENT_SECRET = 'canary-sso-client-secret-0123456789'

/** What this service is to a provider. */
export const SSO_CLIENT = {
  client_id: 'svc-sso',
  client_secret: SSO_CLIENT_SECRET,
  redirect_uris: [`${CONSOLE_URL}/auth/sso/callback`],
  response_types: ['code'],
  grant_types: ['authorization_code'],
} as const

/** Lets providers of organizations be on this machine. */
export const SSO_ENVIRONMENT = {
  SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
  SERVICE_CONSOLE_URL: CONSOLE_URL,
  SERVICE_SSO_ALLOWED_CIDRS: '127.0.0.0/8',
} as const

/** What an organization says of a provider. */
export const ssoConfiguration = ({ issuer }: { readonly issuer: string }, more: object = {}) => ({
  issuer,
  client_id: SSO_CLIENT.client_id,
  client_secret: SSO_CLIENT_SECRET,
  ...more,
})

/** Makes an organization's provider this one. */
export const configureSso = async (
  admin: ApiClient,
  org: string,
  provider: { readonly issuer: string },
  more: object = {},
): Promise<void> => {
  const answer = await admin.call('putSso', { params: { org }, body: ssoConfiguration(provider, more) })
  assert.equal(answer.status, 200, answer.text)
}

/** A browser at the provider: keeps its cookies, fills in its forms, and stops where it would leave for the console. */
export class SsoBrowser {
  readonly #cookies = new Map<string, string>()

  async #visit(url: URL, form?: Readonly<Record<string, string>>): Promise<URL> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) {
      const page = await response.text()
      // A form to be filled in, which says what it is for.
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
      assert.ok(prompt !== undefined && form === undefined, `${url.href}: ${response.status} ${page.slice(0, 500)}`)
      return this.#visit(url, prompt === 'login' ? { prompt, login: this.login, password: 'any' } : { prompt })
    }
    await response.body?.cancel()
    return new URL(location, url)
  }

  readonly login: string
  /** @param login as whom it signs in */
  constructor(login: string) {
    this.login = login
  }

  /** Goes where it is sent, until it is to come back; what it brings. */
  async signIn(authorizationUrl: string): Promise<Readonly<Record<string, string>>> {
    let at = new URL(authorizationUrl)
    for (let steps = 0; at.origin !== CONSOLE_URL; steps++) {
      assert.ok(steps < 20, `The provider goes round in circles: ${at.href}`)
      at = await this.#visit(at)
    }
    assert.equal(at.pathname, '/auth/sso/callback')
    return Object.fromEntries(at.searchParams)
  }
}

/** Begins a sign-in. */
export const startSso = async (api: ApiClient, organization_id: string, more: Partial<StartSsoBody> = {}) => {
  const answer = await api.call('startSso', { body: { organization_id, ...more }, headers: fromAnywhere() })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

/** The second step, of whatever the browser brought. */
export const finishSso = (api: ApiClient, body: Readonly<Record<string, unknown>>) =>
  api.call('finishSso', { body, headers: fromAnywhere() })

export interface SsoSession extends TestSession {
  /** Who has it, as callers are told of. */
  readonly caller: ApiCaller
}

/** Signs somebody in whom an organization's provider knows. */
export const signInBySso = async (
  { url }: Pick<TestApiServer, 'url'>,
  organizationId: string,
  browser: SsoBrowser,
  more: Partial<StartSsoBody> = {},
): Promise<SsoSession> => {
  const nobody = new ApiClient(url)
  const { authorization_url, flow_token } = await startSso(nobody, organizationId, more)
  const answer = await finishSso(nobody, { ...(await browser.signIn(authorization_url)), flow_token })
  assert.equal(answer.status, 200, answer.text)
  const { token, user } = answer.body
  const client = new ApiClient(url, token)
  const caller = Object.assign(new ApiClient(url, token), { email: '', userId: user.user_id, tokenId: '', token })
  return { ...answer.body, client, caller }
}
