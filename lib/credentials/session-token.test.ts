import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { sized } from '../../testkit/full.ts'
import { isSessionToken, newSessionToken, nextSessionToken } from './session-token.ts'
import { tokenDigest, tokenKindOf } from './token.ts'

describe('session tokens', () => {
  it('have their form, and no other kind’s', () => {
    const { token, prefix, digest } = newSessionToken()
    assert.match(token, /^svc_ses_[0-9A-Za-z]{43}$/)
    assert.match(prefix, /^svc_ses_[0-9A-Za-z]{8}$/)
    assert.deepEqual(digest, tokenDigest(token))
    assert.ok(isSessionToken(token) && tokenKindOf(token) === undefined)
    for (const other of ['', token.slice(1), `${token}x`, `${token.slice(0, -1)}é`, token.replace('ses', 'pat')])
      assert.equal(isSessionToken(other), false, other)
  })

  it('follow each other alike for everybody who has the one before and the key, and never repeat', () => {
    const key = randomBytes(32)
    const seen = new Set<string>()
    let { token } = newSessionToken()
    for (let generation = 0; generation < sized(200, 5000); generation++) {
      const next = nextSessionToken(key, token, generation)
      assert.ok(isSessionToken(next.token))
      assert.equal(nextSessionToken(key, token, generation).token, next.token)
      assert.notEqual(nextSessionToken(randomBytes(32), token, generation).token, next.token)
      assert.notEqual(nextSessionToken(key, token, generation + 1).token, next.token)
      assert.ok(!seen.has(next.token))
      seen.add(token)
      token = next.token
    }
  })
})
