import assert from 'node:assert/strict'
import { newOneTimeToken } from '../../lib/credentials/one-time-token.ts'
import { newSessionToken } from '../../lib/credentials/session-token.ts'
import { newAgentToken, newApiKey, newPersonalToken } from '../../lib/credentials/token.ts'
import { TOKEN_WORDS, type TokenWord } from '../../lib/credentials/token-words.ts'
import { jsonLog } from './json-log.ts'
import { scrub } from './scrub.ts'

/** A word without a way to make its token does not compile. */
const MADE: Readonly<Record<TokenWord, () => { readonly token: string }>> = {
  pat: newPersonalToken,
  agt: () => newAgentToken(['org:acme:read', 'project:acme/shop:deploy'], undefined),
  ses: newSessionToken,
  mgl: () => newOneTimeToken('mgl'),
  inv: () => newOneTimeToken('inv'),
  rst: () => newOneTimeToken('rst'),
  setup: () => newOneTimeToken('setup'),
  mfa: () => newOneTimeToken('mfa'),
  dev: () => newOneTimeToken('dev'),
  sso: () => newOneTimeToken('sso'),
}

describe('scrub', () => {
  const { token } = newPersonalToken()
  const secrets: [why: string, line: string, secret: string][] = [
    ['a token', `called with ${token}.`, token],
    ['a token after a bearer scheme', `Authorization: Bearer ${token}`, token],
    ['a foreign bearer', 'authorization: bearer eyJhbGciOi.canary.x', 'eyJhbGciOi.canary.x'],
    ['a password in a URL', 'connecting to postgresql://app:canary@127.0.0.1:20000/app', 'canary'],
    ['an API key', 'svck_canarycanary0', 'canary'],
    ['a signature', 'GET /download?expires=1&signature=deadbeef01', 'deadbeef01'],
    ['a setup token', 'svc_setup_canary0123', 'canary'],
  ]
  for (const [why, line, secret] of secrets)
    it(`takes ${why} out and leaves the rest`, () => {
      const clean = scrub(line)
      assert.ok(!clean.includes(secret), clean)
      assert.ok(clean.includes('[redacted]'))
    })

  for (const word of TOKEN_WORDS)
    it(`knows tokens that begin with svc_${word}_`, () => {
      const made = MADE[word]().token
      assert.ok(made.startsWith(`svc_${word}_`))
      assert.equal(scrub(`{"msg":"a ${made} of somebody"}`), `{"msg":"a svc_${word}_[redacted] of somebody"}`)
    })

  it('knows API keys', () => assert.equal(scrub(`a ${newApiKey().token}!`), 'a svck_[redacted]!'))

  it('leaves roles, metric names and ids alone', () => {
    const line =
      '{"msg":"svc_api signs in; svc_http_requests_in_flight; tok_06dm3qz5hx7n0c8k2v4r9w1tbe; op_06dm3qz5hx7n0c8k2v"}'
    assert.equal(scrub(line), line)
  })

  it('catches what an error or a nested field carries into the log', () => {
    const lines: string[] = []
    const log = jsonLog({ write: line => void lines.push(line) })
    log.error({ err: new Error(`connect postgres://app:canary@h/db failed`) }, `while serving ${token}`)
    log.info({ a: { b: [{ c: `Bearer ${token}` }] } }, 'Nested')
    assert.equal(lines.length, 2)
    for (const line of lines) {
      assert.ok(!line.includes('canary') && !line.includes(token), line)
      JSON.parse(line)
    }
  })
})
