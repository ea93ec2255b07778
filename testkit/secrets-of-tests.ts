/** What tests sent and got that is secret: none of it may stand in anything that a server wrote, or in an answer that is not to give it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
/** Every text of a document once: most of it says the same of each route. */
const textsOf = (document: string): string => {
  const texts = new Set<string>()
  JSON.parse(document, (name, value: unknown) => {
    texts.add(name)
    if (typeof value === 'string') texts.add(value)
    return value
  })
  return [...texts].join('\n')
}
/** What everybody reads is no secret: examples stand here. */
let published: string | undefined
const isPublished = (value: string): boolean =>
  (published ??= textsOf(readFileSync(join(import.meta.dirname, '../docs/api/openapi.json'), 'utf8'))).includes(value)
/** Most are sent many times. */
const known = new Set<string>()

const note = (value: unknown): void => {
  if (Array.isArray(value)) for (const each of value) note(each)
  else if (typeof value === 'string' && !known.has(value)) {
    known.add(value)
    if (TRIED.test(value) || isPublished(value)) return
    detector.add(IN_LINK.exec(value)?.[0] ?? IN_CONNECTION.exec(value)?.[1] ?? value)
  }
}

const noteFields = (body: unknown, isSecret: (name: string) => boolean): void => {
  if (typeof body === 'string') note(body)
  if (typeof body !== 'object' || body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (isSecret(name)) note(value)
    else if (typeof value === 'object') noteFields(value, isSecret)
  }
}

/** Notes a secret, a list of them, or every secret in the body of a successful answer. */
export const noteSecrets = (body: unknown): void => {
  if (Array.isArray(body) && body.every(each => typeof each === 'string')) note(body)
  else noteFields(body, name => SECRET_FIELD.test(name))
}

/** Notes every secret in the body of a request: what proves who asks, too. In answers these are a problem's word, and an operation's. */
const noteSecretsOfRequest = (body: unknown): void =>
  noteFields(body, name => SECRET_FIELD.test(name) || SECRET_IN_REQUEST.test(name))

/** Settings of a server that hold a secret, or several with commas between them. */
const SECRET_SETTING = /_(?:TOKEN|PASSWORD|PASSWORD_HASH|SECRET|KEY)$/
const SECRET_SETTINGS = /_KEYS$/

/** Notes every secret among the settings that a test gives a server. */
export const noteSecretSettings = (environment: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(environment))
    if (SECRET_SETTING.test(name)) noteSecrets(value)
    else if (SECRET_SETTINGS.test(name)) noteSecrets(value.split(',').filter(Boolean))
}

/** What tests send, in whichever way. */
interface SentRequest {
  readonly authorization: string | null | undefined
  /** It opens what is kept of an answer. */
  readonly idempotencyKey: string | null | undefined
  /** As it was read, or its text: JSON or a form. */
  readonly body: unknown
}

const readBody = (body: unknown): unknown => {
  if (typeof body !== 'string') return body
  try {
    return JSON.parse(body) as unknown
  } catch {
    return Object.fromEntries(new URLSearchParams(body))
  }
}

/** Notes every secret of a request. */
const noteSecretsOfSent = ({ authorization, idempotencyKey, body }: SentRequest): void => {
  const bearer = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1]
  if (bearer !== undefined) noteSecrets(bearer)
  if (typeof idempotencyKey === 'string') noteSecrets(idempotencyKey)
  const read = readBody(body)
  if (typeof read === 'object') noteSecretsOfRequest(read)
}

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

/** An answer as it is judged. */
interface JudgedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: unknown
}

/** @throws AssertionError when an answer tells a secret, of this request or of any before it, where it gives none */
const assertAnswerKeepsSecrets = (where: string, { status, headers, text, body }: JudgedAnswer): void => {
  const rest = status < 300 && body !== undefined ? JSON.stringify(body, besidesSecrets) : text
  const told = [...headers].filter(([name]) => name !== SECRET_HEADER).map(([name, value]) => `${name}: ${value}`)
  assertNoSecrets({ [`what ${where} answered (${status})`]: [...told, rest] })
}

/**
 * What every request of a test goes through, and its answer: secrets of both are noted, and the answer is judged.
 * @throws AssertionError when the answer tells a secret where it gives none
 */
export const judgeExchange = (where: string, sent: SentRequest, answer: JudgedAnswer): void => {
  noteSecretsOfSent(sent)
  if (answer.status < 300) noteSecrets(answer.body)
  const next = answer.headers.get(SECRET_HEADER)
  if (next !== null) noteSecrets(next)
  assertAnswerKeepsSecrets(where, answer)
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
