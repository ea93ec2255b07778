import assert from 'node:assert/strict'
import { isOneTimeToken } from './one-time-token.ts'
import { newSsoFlow, ssoSecretsOf } from './sso-flow.ts'

describe('the secrets of a sign-in at a provider', () => {
  it('are new for each', () => {
    const flows = Array.from({ length: 50 }, newSsoFlow)
    assert.equal(new Set(flows.flatMap(({ state, token }) => [state, token])).size, 100)
    assert.ok(flows.every(({ state, token }) => isOneTimeToken('sso', token) && /^[0-9A-Za-z]{43}$/.test(state)))
  })

  it('derive from the browser’s token and a key of ours, and differ from each other', () => {
    const [key, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
    const { token } = newSsoFlow()
    const secrets = ssoSecretsOf(key, token)
    assert.deepEqual(ssoSecretsOf(key, token), secrets)
    const all = [secrets, ssoSecretsOf(other, token), ssoSecretsOf(key, newSsoFlow().token)]
    assert.equal(new Set(all.flatMap(each => Object.values(each))).size, 6)
    // What RFC 7636 wants of a code verifier.
    assert.match(secrets.codeVerifier, /^[A-Za-z0-9._~-]{43,128}$/)
  })
})
