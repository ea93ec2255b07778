/** Real receivers of letters: a mail server and a relay, with TLS of an authority of their own. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { type Identity, makeAuthority, makeServerIdentity } from '../runtime/tls/certificate.ts'
import { atEnd } from './at-end.ts'
import { newTemporaryFolder } from './test-folder.ts'

/** Somebody whom tests trust, or not. */
export interface TestAuthority {
  readonly pem: string
  /** The same in a file. */
  readonly file: string
  identity(...hosts: string[]): Identity
}

export const testAuthority = (): TestAuthority => {
  const made = makeAuthority('mail test authority', 1, new Date())
  const authority = { certificate: new X509Certificate(made.certificate), key: createPrivateKey(made.key) }
  const folder = newTemporaryFolder()
  atEnd(async () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'authority.pem')
  writeFileSync(file, made.certificate)
  return {
    pem: made.certificate,
    file,
    identity: (...hosts) => makeServerIdentity(authority, hosts.length === 0 ? ['127.0.0.1'] : hosts, 1, new Date()),
  }
}

/** A letter that arrived. */
export interface ReceivedLetter {
  readonly to: string
  readonly from: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** Its name: the same for each time that it was sent. */
  readonly id: string
  /** As it came. */
  readonly raw: string
}

/** What a receiver does with the n-th letter that reaches it, from 1. */
export type Respond = (n: number) => number | undefined

export interface MailReceiver {
  readonly port: number
  readonly letters: readonly ReceivedLetter[]
  /** Connections that were made, whatever became of them. */
  readonly connections: () => number
  /** Letters that are being received at this moment, and the most that were at once. */
  readonly mostAtOnce: () => number
  /** Waits for a letter that satisfies. */
  letter(is: (letter: ReceivedLetter) => boolean): Promise<ReceivedLetter>
  stop(): Promise<void>
}

export interface ReceiverOptions {
  readonly identity: Identity
  readonly respond?: Respond
  /** How long a letter takes to be received. */
  readonly delayMs?: number
}

const decodeBody = (encoding: string, body: string): string => {
  if (/base64/i.test(encoding)) return Buffer.from(body, 'base64').toString()
  if (!/quoted-printable/i.test(encoding)) return body
  const bytes = body
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

const headerOf = (head: string, name: string): string =>
  new RegExp(`^${name}: ?(.*)$`, 'im').exec(head.replaceAll(/\r?\n[ \t]+/g, ' '))?.[1]?.trim() ?? ''

/** RFC 2047, as our letters use it. */
const decodeWords = (text: string): string =>
  text
    .replaceAll(/\?= =\?/g, '?==?')
    .replaceAll(/=\?utf-8\?([QB])\?([^?]*)\?=/gi, (_all, kind: string, body: string) =>
      decodeBody(kind.toUpperCase() === 'B' ? 'base64' : 'quoted-printable', body.replaceAll('_', ' ')),
    )

const parse = (raw: string, to: string, from: string): ReceivedLetter => {
  const [head = ''] = raw.split(/\r?\n\r?\n/, 1)
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? 'none'
  const part = (type: string): string => {
    const found = raw.split(`--${boundary}`).find(each => headerOf(each, 'Content-Type').startsWith(type)) ?? ''
    const cut = /\r?\n\r?\n/.exec(found.trimStart())
    // The line end before a boundary belongs to it.
    const trimmed = found.trimStart().replace(/\r?\n$/, '')
    const body = cut === null ? '' : trimmed.slice(cut.index + cut[0].length)
    return decodeBody(headerOf(trimmed, 'Content-Transfer-Encoding'), body).replaceAll('\r\n', '\n')
  }
  const id = /<(let_[^@]+)@/.exec(headerOf(head, 'Message-ID'))?.[1] ?? ''
  return {
    to,
    from,
    subject: decodeWords(headerOf(head, 'Subject')),
    text: part('text/plain'),
    html: part('text/html'),
    id,
    raw,
  }
}

const received = () => {
  const letters: ReceivedLetter[] = []
  let connections = 0
  let now = 0
  let most = 0
  return {
    letters,
    connected: (): void => {
      connections++
    },
    connections: () => connections,
    mostAtOnce: () => most,
    begin: () => {
      most = Math.max(most, ++now)
    },
    end: (): void => {
      now--
    },
    letter: async (is: (letter: ReceivedLetter) => boolean): Promise<ReceivedLetter> => {
      // An end, so that a test that fails leaves nothing running.
      for (const end = performance.now() + 15_000; performance.now() < end; ) {
        const found = letters.find(is)
        if (found !== undefined) return found
        await sleep(10)
      }
      throw new Error('The letter did not come')
    },
  }
}

export interface SmtpOptions extends ReceiverOptions {
  /** none: it does not offer TLS at all. */
  readonly tls: 'implicit' | 'starttls' | 'none'
  readonly account?: { readonly user: string; readonly password: string }
  /** Where it answers so. Default: after the letter. */
  readonly respondAt?: 'recipient' | 'letter'
  /** Where it listens. Default: on loopback, at a port that is free. */
  readonly listen?: { readonly host: string; readonly port: number }
}

/** Starts a mail server. @throws Error `EACCES` for a port that this account may not have */
export const startSmtpServer = async (options: SmtpOptions): Promise<MailReceiver> => {
  const { identity, tls, account, respond = () => undefined, respondAt = 'letter', delayMs = 0 } = options
  const { host, port } = options.listen ?? { host: '127.0.0.1', port: 0 }
  const state = received()
  let reached = 0
  const refusal = (): Error | undefined => {
    const code = respond(++reached)
    return code === undefined
      ? undefined
      : Object.assign(new Error('No, and svc_mgl_echo is yours'), { responseCode: code })
  }
  const server = new SMTPServer({
    secure: tls === 'implicit',
    cert: identity.certificate,
    key: identity.key,
    authOptional: account === undefined,
    disabledCommands: [...(tls === 'none' ? ['STARTTLS'] : []), ...(account === undefined ? ['AUTH'] : [])],
    logger: false,
    closeTimeout: 50,
    onConnect: (_session, done) => {
      state.connected()
      done()
    },
    onAuth: ({ username, password }, _session, done) => {
      if (username === account?.user && password === account?.password) done(null, { user: username })
      else done(Object.assign(new Error('No'), { responseCode: 535 }))
    },
    onRcptTo: (_address, _session, done) => {
      done(respondAt === 'recipient' ? refusal() : undefined)
    },
    onData: (stream, { envelope }, done) => {
      const chunks: Buffer[] = []
      state.begin()
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        setTimeout(() => {
          state.end()
          const error = respondAt === 'letter' ? refusal() : undefined
          if (error !== undefined) {
            done(error)
            return
          }
          const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
          state.letters.push(
            parse(Buffer.concat(chunks).toString(), envelope.rcptTo.map(each => each.address).join(), from),
          )
          done(undefined)
        }, delayMs).unref()
      })
    },
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  // A client that breaks off is what some tests are about.
  server.on('error', () => undefined)
  const stop = () => new Promise<void>(resolve => server.close(() => resolve()))
  atEnd(stop)
  return { ...state, port: (server.server.address() as AddressInfo).port, stop }
}

export interface MailRelay extends MailReceiver {
  readonly url: string
  readonly requests: readonly { readonly headers: IncomingHttpHeaders; readonly path: string }[]
}

export interface RelayOptions extends ReceiverOptions {
  readonly token: string
  /** Where to answer so, redirects point there. */
  readonly location?: string
}

/** Starts a relay on loopback, which takes letters as JSON. */
export const startMailRelay = async (options: RelayOptions): Promise<MailRelay> => {
  const { identity, token, respond = () => undefined, delayMs = 0, location } = options
  const state = received()
  const requests: { headers: IncomingHttpHeaders; path: string }[] = []
  const server = createServer({ cert: identity.certificate, key: identity.key }, (request, response) => {
    state.connected()
    state.begin()
    requests.push({ headers: request.headers, path: request.url ?? '' })
    const status = request.headers.authorization === `Bearer ${token}` ? (respond(requests.length) ?? 202) : 401
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      setTimeout(() => {
        state.end()
        const raw = Buffer.concat(chunks).toString()
        if (status < 300) {
          const body = JSON.parse(raw) as { to: string; subject: string; text: string; html: string }
          state.letters.push({ ...body, from: '', id: String(request.headers['idempotency-key']), raw })
        }
        response.writeHead(status, location === undefined ? {} : { Location: location }).end('and svc_mgl_echo')
      }, delayMs).unref()
    })
  })
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const stop = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  atEnd(stop)
  return { ...state, port, requests, url: `https://127.0.0.1:${port}/letters`, stop }
}
