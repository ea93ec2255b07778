import assert from 'node:assert/strict'
import { newId } from './time-ordered-id.ts'

describe('newId', () => {
  it('is 26 lowercase characters after its prefix, as every id column and contract expects', () => {
    for (let n = 0; n < 200; n++) assert.match(newId('op'), /^op_[0-9a-hjkmnp-tv-z]{26}$/)
  })

  it('sorts by time', () => {
    const ids = [0, 1, 31, 32, 1_795_773_600_000, 1_795_773_600_001, 2 ** 48 - 1].map(now => newId('tok', now))
    assert.deepEqual([...ids].sort(), ids)
  })

  it('does not repeat within a millisecond', () => {
    assert.equal(new Set(Array.from({ length: 5000 }, () => newId('usr', 7))).size, 5000)
  })
})
