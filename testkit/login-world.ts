/** The login with mail, on two replicas: a real server of the service, and a real relay, or mail server, that takes its letters. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from './api-client.ts'
import { type ApiServerOptions, startTestApiServer, type TestApiServer } from './api-server.ts'
import {
  type MailReceiver,
  type ReceivedLetter,
  startMailRelay,
  startSmtpServer,
  type TestAuthority,
  testAuthority,
} from './mail-servers.ts'

export const CONSOLE_URL = 'https://console.example.com'
const RELAY_TOKEN = 'canary-relay-token-0123456789'
const MAIL_ACCOUNT = { user: 'service', password: 'canary-mail-password-0123456789' }

/** How letters leave; implicit TLS is for port 465 alone, which not every account may have. */
export type MailWay = 'relay' | 'starttls' | 'implicit'

export interface LoginWorldOptions extends ApiServerOptions {
  /** Default: a relay. */
  readonly mail?: MailWay
}

/** A receiver, and the settings with which letters go there. */
const startReceiver = async (
  way: MailWay,
  authority: TestAuthority,
): Promise<{ readonly relay: MailReceiver; readonly settings: Readonly<Record<string, string>> }> => {
  if (way === 'relay') {
    const relay = await startMailRelay({ identity: authority.identity(), token: RELAY_TOKEN })
    return { relay, settings: { SERVICE_MAIL_WEBHOOK_URL: relay.url, SERVICE_MAIL_WEBHOOK_TOKEN: RELAY_TOKEN } }
  }
  // Its one port: at an address that no other test takes at the same time.
  const host = way === 'implicit' ? `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}` : '127.0.0.1'
  const relay = await startSmtpServer({
    tls: way,
    identity: authority.identity(host),
    account: MAIL_ACCOUNT,
    listen: { host, port: way === 'implicit' ? 465 : 0 },
  })
  return {
    relay,
    settings: {
      SERVICE_DEFAULT_SMTP_HOST: host,
      SERVICE_DEFAULT_SMTP_PORT: String(relay.port),
      SERVICE_DEFAULT_SMTP_USER: MAIL_ACCOUNT.user,
      SERVICE_DEFAULT_SMTP_PASSWORD: MAIL_ACCOUNT.password,
      SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: 'service@example.com',
    },
  }
}

export interface LoginWorld {
  readonly api: TestApiServer
  readonly relay: MailReceiver
  /** Callers without a credential, at each replica. */
  readonly replicas: readonly [ApiClient, ApiClient]
  /** The next letter to an address that nobody looked at yet. */
  nextLetter(to: string): Promise<ReceivedLetter>
  /** All letters have left, or will not. */
  mailIsOut(): Promise<void>
  /** Lets time pass for letters and attempts. */
  pass(seconds: number): Promise<void>
  stop(): Promise<void>
}

let lastClient = 0
/** An address of its own for each call, as a trusted proxy says: none meets the limit of another. */
export const fromAnywhere = (): { readonly headers: Readonly<Record<string, string>> } => {
  lastClient = (lastClient + 1) % (254 * 254)
  return { headers: { 'X-Forwarded-For': `10.9.${Math.floor(lastClient / 254)}.${(lastClient % 254) + 1}` } }
}

export const startLoginWorld = async ({ mail = 'relay', ...options }: LoginWorldOptions = {}): Promise<LoginWorld> => {
  const authority = testAuthority()
  const { relay, settings } = await startReceiver(mail, authority)
  const api = await startTestApiServer({
    operator: false,
    ...options,
    environment: {
      SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
      SERVICE_CONSOLE_URL: CONSOLE_URL,
      ...settings,
      SERVICE_MAIL_CA_FILE: authority.file,
      ...options.environment,
    },
  })
  const seen = new Set<ReceivedLetter>()
  const { database } = api.plane
  return {
    api,
    relay,
    replicas: [api.nobody, new ApiClient(await api.startReplica())],
    nextLetter: async to => {
      const letter = await relay.letter(each => each.to === to && !seen.has(each))
      seen.add(letter)
      return letter
    },
    mailIsOut: async () => {
      while ((await database.row(`select 1 from mail_outbox where state = 'waiting'`)) !== undefined) await sleep(10)
    },
    pass: async seconds => {
      await database.rows(
        `update attempts set hits = array(select h - make_interval(secs => $1) from unnest(hits) h order by h)`,
        [seconds],
      )
      await database.rows(
        `update magic_links set created_at = created_at - make_interval(secs => $1), expires_at = expires_at - make_interval(secs => $1)`,
        [seconds],
      )
      await database.rows(
        `update invitations set created_at = created_at - make_interval(secs => $1), expires_at = expires_at - make_interval(secs => $1)`,
        [seconds],
      )
    },
    stop: async () => {
      await api.stop()
      await relay.stop()
    },
  }
}

/** What a sign-in letter tells. */
export const linkAndCode = ({ text }: ReceivedLetter): { readonly token: string; readonly code: string } => {
  const token = /\/auth\/magic\?token=(svc_mgl_[0-9A-Za-z]{43})\b/.exec(text)?.[1]
  const code = /: (\d{6})$/m.exec(text)?.[1]
  assert.ok(token !== undefined && code !== undefined, text)
  return { token, code }
}
