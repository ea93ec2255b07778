import assert from 'node:assert/strict'
import { type BackoffPolicy, backoffCeilingMs, backoffMs, steadyBackoffMs } from './backoff.ts'

const POLICY: BackoffPolicy = { baseMs: 4_000, capMs: 300_000 }
const CEILINGS = [4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
/** Just under 1, as a random number can be. */
const MOST = 1 - 2 ** -53

describe('waits between attempts', () => {
  it('double up to their cap, however often it failed', () => {
    assert.deepEqual(
      CEILINGS.map((_, failures) => backoffCeilingMs(POLICY, failures)),
      CEILINGS,
    )
    for (const failures of [64, 1_000, Number.MAX_SAFE_INTEGER])
      assert.equal(backoffCeilingMs(POLICY, failures), POLICY.capMs)
  })

  it('are anywhere below that with full jitter, and in its upper half with equal jitter: never nothing', () => {
    for (const [failures, ceiling] of CEILINGS.entries()) {
      assert.equal(
        backoffMs(POLICY, failures, () => 0),
        0,
      )
      assert.equal(
        backoffMs(POLICY, failures, () => 0.25),
        ceiling / 4,
      )
      assert.equal(
        steadyBackoffMs(POLICY, failures, () => 0),
        ceiling / 2,
      )
      assert.equal(
        steadyBackoffMs(POLICY, failures, () => 0.5),
        (ceiling * 3) / 4,
      )
      for (const wait of [backoffMs, steadyBackoffMs])
        assert.ok(wait(POLICY, failures, () => MOST) <= ceiling && wait(POLICY, failures, () => MOST) > ceiling - 1)
    }
  })

  it('differ between those who failed together', () => {
    for (const wait of [backoffMs, steadyBackoffMs])
      assert.ok(new Set(Array.from({ length: 100 }, () => wait(POLICY, 3, Math.random))).size > 90)
  })
})
