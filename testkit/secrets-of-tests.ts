/** What tests sent and got that is secret: at the end of each server none of it may stand in anything that it wrote. */
import assert from 'node:assert/strict'
import { SecretDetector } from './secret-detector.ts'

/** Fields of requests and of successful answers that hold a secret, or a link with one. */
const SECRET_FIELD =
  /^(?:.*password|.*token|secret|client_secret|device_code|recovery_codes?|reset_url|invite_url|otpauth_uri|connection_uri)$/
/** Tried as a secret and refused: an address, and the beginning of a token, which is shown on purpose. */
const TRIED = /^\S+@\S+$|^svc_[a-z]+_\w{0,8}$/
/** The token of a link. */
const IN_LINK = /svc_[a-z]+_[0-9A-Za-z]{43}/

const detector = new SecretDetector()

const note = (value: unknown): void => {
  if (Array.isArray(value)) for (const each of value) note(each)
  else if (typeof value === 'string' && !TRIED.test(value)) detector.add(IN_LINK.exec(value)?.[0] ?? value)
}

/** Notes a secret, or every secret in a body. Problems have none: their `code` is a word of ours. */
export const noteSecrets = (body: unknown): void => {
  if (typeof body === 'string') note(body)
  if (typeof body !== 'object' || body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (SECRET_FIELD.test(name)) note(value)
    else if (typeof value === 'object') noteSecrets(value)
  }
}

/** @throws AssertionError naming the sink and the line in which a secret stands */
export const assertNoSecrets = (sinks: Readonly<Record<string, readonly string[]>>): void => {
  for (const [name, lines] of Object.entries(sinks)) {
    const found = detector.find(lines)
    if (found.length === 0) continue
    const line = lines.find(each => detector.find(each).length > 0) ?? '(split over lines)'
    assert.fail(
      `${found.length} secrets stand in ${name}, one begins with ${found[0]?.slice(0, 12)}: ${line.slice(0, 500)}`,
    )
  }
}
