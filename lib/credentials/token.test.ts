import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { isPersonalToken, newPersonalToken, tokenDigest } from './token.ts'

describe('personal tokens', () => {
  it('pass their own gate, are never drawn twice and show their first characters only', () => {
    const drawn = Array.from({ length: sized(500, 20_000) }, () => newPersonalToken())
    assert.equal(new Set(drawn.map(each => each.token)).size, drawn.length)
    for (const { token, prefix, digest } of drawn) {
      assert.ok(isPersonalToken(token), token)
      assert.match(prefix, /^svc_pat_[0-9A-Za-z]{8}$/)
      assert.ok(token.startsWith(prefix))
      assert.deepEqual(digest, tokenDigest(token))
    }
  })

  it('use every character of the alphabet about equally often', () => {
    const counts = new Map<string, number>()
    const n = sized(2000, 20_000)
    for (let i = 0; i < n; i++)
      for (const char of newPersonalToken().token.slice(8, 51)) counts.set(char, (counts.get(char) ?? 0) + 1)
    assert.equal(counts.size, 62)
    const expected = (n * 43) / 62
    for (const [char, count] of counts) assert.ok(Math.abs(count / expected - 1) < 0.2, `${char} drawn ${count} times`)
  })

  it('fail the gate when any one character is changed, cut or added', () => {
    const { token } = newPersonalToken()
    fc.assert(
      fc.property(
        fc.nat(token.length - 1),
        fc.constantFrom('a', 'Z', '0', '9', '_', '-', '.', ' ', '\n', '\u0000', 'é'),
        (at, char) => {
          const changed = token.slice(0, at) + char + token.slice(at + 1)
          assert.equal(isPersonalToken(changed), changed === token)
          assert.equal(isPersonalToken(token.slice(0, at)), false)
          assert.equal(isPersonalToken(token.slice(0, at) + char + token.slice(at)), false)
        },
      ),
      { numRuns: sized(300, 20_000) },
    )
  })
})
