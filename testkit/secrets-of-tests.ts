/** What tests sent and got that is secret: none of it may stand in anything that a server wrote, or in an answer that is not to give it. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import type { Log } from '../runtime/log/log.ts'
import { SecretDetector } from './secret-detector.ts'

/** Fields of requests and of successful answers that hold a secret, or a link with one. */
const SECRET_FIELD =
  /^(?:.*password|.*token|secret|client_secret|device_code|user_code|recovery_codes?|reset_url|invite_url|otpauth_uri|connection_uri|external_uri)$/
/** Fields that hold a secret in requests alone. */
const SECRET_IN_REQUEST = /^(?:code|state)$/
/** Texts of a successful answer that say how to use what it gives. */
const WITH_SECRET = /^(?:agent_message|verification_uri_complete)$/
/** The header of an answer that tells a session's next token. */
const SECRET_HEADER = 'svc-session-token'
/** Tried as a secret and refused: an address, and the beginning of a token, which is shown on purpose. */
const TRIED = /^\S+@\S+$|^svc_[a-z]+_\w{0,8}$/
/** The token of a link. */
const IN_LINK = /svc_[a-z]+_[0-9A-Za-z]{43}/
/** The password of a connection. */
const IN_CONNECTION = /^postgres(?:ql)?:\/\/[^:@/]+:([^@/]+)@/

const detector = new SecretDetector()

const note = (value: unknown): void => {
  if (Array.isArray(value)) for (const each of value) note(each)
  else if (typeof value === 'string' && !TRIED.test(value))
    detector.add(IN_LINK.exec(value)?.[0] ?? IN_CONNECTION.exec(value)?.[1] ?? value)
}

const noteFields = (body: unknown, isSecret: (name: string) => boolean): void => {
  if (typeof body === 'string') note(body)
  if (typeof body !== 'object' || body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (isSecret(name)) note(value)
    else if (typeof value === 'object') noteFields(value, isSecret)
  }
}

/** Notes a secret, or every secret in the body of a successful answer. */
export const noteSecrets = (body: unknown): void => noteFields(body, name => SECRET_FIELD.test(name))

/** Notes every secret in the body of a request: what proves who asks, too. In answers these are a problem's word, and an operation's. */
export const noteSecretsOfRequest = (body: unknown): void =>
  noteFields(body, name => SECRET_FIELD.test(name) || SECRET_IN_REQUEST.test(name))

/** @throws AssertionError naming the sink and the line in which a secret stands */
export const assertNoSecrets = (sinks: Readonly<Record<string, readonly unknown[]>>): void => {
  for (const [name, lines] of Object.entries(sinks)) {
    const found = detector.find(lines)
    if (found.length === 0) continue
    const line = lines.find(each => detector.find(each).length > 0) ?? '(split over lines)'
    const shown = typeof line === 'string' ? line : inspect(line, { depth: 6, showHidden: true })
    assert.fail(
      `${found.length} secrets stand in ${name}, one begins with ${found[0]?.slice(0, 12)}: ${shown.slice(0, 500)}`,
    )
  }
}

/** What of an answer may hold no secret: all but the fields and the header that are there to give one. */
const besidesSecrets = (name: string, value: unknown): unknown =>
  SECRET_FIELD.test(name) || WITH_SECRET.test(name) ? undefined : value

/** An answer as {@link assertAnswerKeepsSecrets} judges it. */
interface JudgedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: unknown
}

/** @throws AssertionError when an answer tells a secret, of this request or of any before it, where it gives none */
export const assertAnswerKeepsSecrets = (where: string, { status, headers, text, body }: JudgedAnswer): void => {
  const rest = status < 300 && body !== undefined ? JSON.stringify(body, besidesSecrets) : text
  const told = [...headers].filter(([name]) => name !== SECRET_HEADER).map(([name, value]) => `${name}: ${value}`)
  assertNoSecrets({ [`what ${where} answered (${status})`]: [...told, rest] })
}

/** A log that passes everything on, and keeps each error that it is given, whatever of it is written. */
export const keepingErrors = (log: Log, errors: unknown[]): Log => {
  const kept =
    (level: 'debug' | 'info' | 'warn' | 'error'): Log['info'] =>
    (fields, message) => {
      if (fields['err'] !== undefined) errors.push(fields['err'])
      log[level](fields, message)
    }
  return {
    debug: kept('debug'),
    info: kept('info'),
    warn: kept('warn'),
    error: kept('error'),
    child: fields => keepingErrors(log.child(fields), errors),
  }
}
