/** A real identity provider, npm's `oidc-provider`, on a port of this machine; and what can be wrong with one. */
import assert from 'node:assert/strict'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import Provider from 'oidc-provider'
import { noteSecrets } from './secrets-of-tests.ts'

/** How the provider behaves where it is asked about tokens. */
export type Mood =
  | 'well'
  | 'silent'
  | 'rubbish'
  | 'not-json'
  | 'endless'
  | 'broken-off'
  | 'redirecting'
  | 'failing'
  | 'refusing'

export interface MintOptions {
  readonly subject?: string | undefined
  readonly audience?: string
  readonly seconds?: number
  /** More that it says of the token. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly kind?: 'AccessToken' | 'RefreshToken' | 'ClientCredentials'
}

export interface TestIdentityProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** How often it was asked about tokens. */
  readonly asked: () => number
  /** The authorization headers and bodies of those questions. */
  readonly questions: readonly { readonly authorization: string | undefined; readonly body: string }[]
  mood: Mood
  /** Waits so long before it answers about tokens. */
  delayMs: number
  /** What more it says of whoever signs in. */
  claims: Readonly<Record<string, unknown>>
  mint(options?: MintOptions): Promise<string>
  revoke(token: string): Promise<void>
  /** Stops listening, with every connection; `start` begins again on the same port. */
  stop(): Promise<void>
  start(): Promise<void>
}

export const CLIENT_SECRET = 'canary-oidc-client-secret-0123456789'
const CLIENT_ID = 'svc'

type Answer = (response: ServerResponse) => void
const ODD: Readonly<Record<Exclude<Mood, 'well' | 'silent'>, Answer>> = {
  rubbish: response => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"active":"yes"}'),
  'not-json': response => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>{"active":true}</p>'),
  endless: response => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    const more = (): void => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  },
  'broken-off': response => {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100 })
    response.write('{"active":true', () => response.destroy())
  },
  redirecting: response => response.writeHead(307, { Location: 'http://127.0.0.1:1/elsewhere' }).end(),
  failing: response => response.writeHead(500, { 'Content-Type': 'application/json' }).end('{"error":"server_error"}'),
  refusing: response =>
    response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"error":"invalid_client"}'),
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

export interface IdentityProviderOptions {
  /** With which it speaks https; without it http. */
  readonly identity?: { readonly certificate: string; readonly key: string }
  /** More clients. */
  readonly clients?: readonly Readonly<Record<string, unknown>>[]
}

export const startIdentityProvider = async ({
  identity,
  clients = [],
}: IdentityProviderOptions = {}): Promise<TestIdentityProvider> => {
  const questions: { authorization: string | undefined; body: string }[] = []
  const sockets = new Set<Socket>()
  const claimsOf = new WeakMap<object, Readonly<Record<string, unknown>>>()
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url !== '/token/introspection') {
      handle(request, response)
      return
    }
    const body = await bodyOf(request)
    questions.push({ authorization: request.headers.authorization, body })
    if (made.delayMs > 0) await new Promise(resolve => setTimeout(resolve, made.delayMs))
    if (made.mood === 'silent') return
    if (made.mood !== 'well') {
      ODD[made.mood](response)
      return
    }
    // Read already: handed on as a parser before it would have done.
    handle(Object.assign(request, { body: Object.fromEntries(new URLSearchParams(body)) }), response)
  }
  const listener = (request: IncomingMessage, response: ServerResponse): void => void serve(request, response)
  const server =
    identity === undefined
      ? createHttpServer(listener)
      : createHttpsServer({ cert: identity.certificate, key: identity.key }, listener)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
  await listen(0)
  const { port } = server.address() as AddressInfo
  const issuer = `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
      ...clients,
    ],
    features: {
      introspection: { enabled: true, allowedPolicy: () => true },
      clientCredentials: { enabled: true },
    },
    extraTokenClaims: (_context: unknown, token: object) => claimsOf.get(token),
    cookies: { keys: ['test-cookie-key'] },
    pkce: { required: () => true },
    // In ID tokens too, where a sign-in looks.
    conformIdTokenClaims: false,
    claims: { openid: ['sub', 'session_expiry'], profile: ['name'], email: ['email'] },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, name: `Name of ${id}`, ...made.claims }),
    }),
    ttl: { AccessToken: 3600, IdToken: 3600, Session: 3600, Grant: 3600, Interaction: 600 },
  })
  handle = provider.callback()
  const made: TestIdentityProvider = {
    issuer,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    asked: () => questions.length,
    questions,
    mood: 'well',
    delayMs: 0,
    claims: {},
    mint: async ({ subject = 'ada', audience = CLIENT_ID, seconds = 3600, claims, kind = 'AccessToken' } = {}) => {
      const client = await provider.Client.find(CLIENT_ID)
      assert.ok(client !== undefined)
      const fields = {
        client,
        scope: 'openid',
        expiresIn: seconds,
        aud: audience,
        ...(kind === 'ClientCredentials' ? {} : { accountId: subject, gty: 'authorization_code' }),
      }
      const token = new provider[kind](fields)
      if (claims !== undefined) claimsOf.set(token, claims)
      const value = await token.save()
      noteSecrets(value)
      return value
    },
    revoke: async token => {
      const found = await provider.AccessToken.find(token)
      assert.ok(found !== undefined)
      await found.destroy()
    },
    start: () => listen(port),
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return made
}
