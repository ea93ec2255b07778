/** An identity provider that a tenant runs and means ill with: a real server, which signs and answers whatever a test wants. */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SSO_CLIENT } from './sso.ts'

type Json = Readonly<Record<string, unknown>>
type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** What it does other than a good one would. */
export interface Malice {
  /** Of its metadata. */
  readonly metadata?: Json
  /** Instead of its metadata, of its keys, of tokens. */
  readonly discovery?: Answer
  readonly keys?: Answer
  readonly token?: Answer
  /** Of the ID token. */
  readonly claims?: Json
  readonly header?: Json
  /** Instead of its signature. */
  readonly signature?: (input: string) => string
  /** Instead of the ID token. */
  readonly idToken?: string | undefined
  /** Waits for this before it answers with tokens. */
  readonly before?: () => Promise<unknown>
}

export interface HostileProvider {
  readonly issuer: string
  malice: Malice
  /** What it puts into ID tokens unless it is told otherwise; empty: the code that it is given. */
  nonce: string
  /** What it was asked, by path. */
  readonly asked: string[]
  stop(): Promise<void>
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const rsa = (key: KeyObject, input: string): string => sign('sha256', Buffer.from(input), key).toString('base64url')

/** A signature by a key that its metadata do not name. */
export const bySomebodyElse = (input: string): string =>
  rsa(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, input)
/** One with the client's secret, as if that were a key. */
export const bySecret = (input: string): string =>
  createHmac('sha256', SSO_CLIENT.client_secret).update(input).digest('base64url')

/** Sends without an end. */
export const endless: Answer = response => {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const more = (): void => {
    while (!response.destroyed && response.write(' '.repeat(65_536)));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}
/** A byte now and then: alive, and never done. */
export const slow: Answer = response => {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 200)
  response.on('close', () => clearInterval(timer))
}
export const redirectTo =
  (location: string): Answer =>
  response =>
    response.writeHead(307, { Location: location }).end()

const codeOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return new URLSearchParams(text).get('code') ?? ''
}

const send = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

/** Answers with something for people. */
export const page: Answer = response => {
  response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>{"access_token":"a","token_type":"Bearer"}</p>')
}

/** Answers with a body. */
export const answering =
  (body: unknown, status = 200): Answer =>
  response =>
    send(response, body, status)

export const startHostileProvider = async (): Promise<HostileProvider> => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const made = { malice: {} as Malice, nonce: '' }
  const asked: string[] = []
  const idToken = (issuer: string, code: string): string => {
    const { claims, header, signature } = made.malice
    const now = Math.floor(Date.now() / 1000)
    const good = {
      iss: issuer,
      aud: SSO_CLIENT.client_id,
      sub: 'mallory',
      nonce: made.nonce === '' ? code : made.nonce,
      iat: now,
      exp: now + 300,
    }
    const input = `${part({ alg: 'RS256', kid: 'one', ...header })}.${part({ ...good, ...claims })}`
    return `${input}.${signature?.(input) ?? rsa(privateKey, input)}`
  }
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const { malice } = made
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const answers: Readonly<Record<string, Answer>> = {
      '/.well-known/openid-configuration':
        malice.discovery ??
        answering({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          response_types_supported: ['code'],
          ...malice.metadata,
        }),
      '/keys': malice.keys ?? answering({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig' }] }),
      '/token':
        malice.token ??
        ((answer, asking) =>
          void codeOf(asking).then(code =>
            send(answer, {
              access_token: 'a',
              token_type: 'Bearer',
              ...('idToken' in malice ? { id_token: malice.idToken } : { id_token: idToken(issuer, code) }),
            }),
          )),
    }
    const answer = answers[path] ?? answering({ error: 'not_found' }, 404)
    void (malice.before?.() ?? Promise.resolve()).then(() => answer(response, request))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(made, {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}
