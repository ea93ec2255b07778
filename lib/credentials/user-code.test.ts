import assert from 'node:assert/strict'
import { newUserCode, shownUserCode, typedUserCode, userCodeDigest } from './user-code.ts'

describe('a user code', () => {
  it('is eight consonants, drawn evenly', () => {
    const seen = new Map<string, number>()
    for (let n = 0; n < 5000; n++) {
      const code = newUserCode()
      assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
      for (const letter of code) seen.set(letter, (seen.get(letter) ?? 0) + 1)
    }
    assert.equal(seen.size, 20)
    // 40,000 letters of 20: 2,000 each, and 6 standard deviations.
    for (const [letter, count] of seen) assert.ok(Math.abs(count - 2000) < 270, `${letter}: ${count}`)
  })

  it('is known however it is typed, and nothing else is', () => {
    const code = newUserCode()
    const shown = shownUserCode(code)
    assert.match(shown, /^[A-Z]{4}-[A-Z]{4}$/)
    for (const typed of [shown, shown.toLowerCase(), ` ${code} `, code.replaceAll(/(?=.)/g, ' ')])
      assert.equal(typedUserCode(typed), code)
    for (const other of ['', 'BCDFGHJ', 'BCDFGHJKL', 'BCDFGHJA', 'BCDF_GHJK', 'ſCDFGHJK', 'BCDFGHJK\u0000'])
      assert.equal(typedUserCode(other), undefined, other)
  })

  it('has a digest by its key', () => {
    const [one, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
    assert.deepEqual(userCodeDigest(one, 'BCDFGHJK'), userCodeDigest(one, 'BCDFGHJK'))
    assert.notDeepEqual(userCodeDigest(one, 'BCDFGHJK'), userCodeDigest(other, 'BCDFGHJK'))
    assert.notDeepEqual(userCodeDigest(one, 'BCDFGHJK'), userCodeDigest(one, 'BCDFGHJL'))
  })
})
