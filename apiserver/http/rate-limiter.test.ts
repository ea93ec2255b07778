import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { RateLimiter } from './rate-limiter.ts'

describe('RateLimiter', () => {
  it('lets a burst pass, then one each interval', () => {
    let now = 0
    const limiter = new RateLimiter({ name: 'default', perMinute: 60, burst: 3 }, () => now)
    assert.deepEqual(
      [1, 2, 3, 4].map(() => limiter.take('a').allowed),
      [true, true, true, false],
    )
    assert.equal(limiter.take('a').retrySeconds, 1)
    assert.equal(limiter.take('b').allowed, true, 'keys do not share a bucket')
    now += 999
    assert.equal(limiter.take('a').allowed, false)
    now += 1
    assert.equal(limiter.take('a').allowed, true)
    assert.equal(limiter.take('a').allowed, false)
  })

  it('never lets more pass than the burst and the rate allow, whatever the order', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 200 }),
        (perMinute, burst, pauses) => {
          let now = 0
          const limiter = new RateLimiter({ name: 'default', perMinute, burst }, () => now)
          let passed = 0
          for (const pause of pauses) {
            now += pause
            if (limiter.take('key').allowed) passed += 1
          }
          assert.ok(passed <= Math.min(burst, perMinute) + (now / 60_000) * perMinute + 1e-6)
        },
      ),
      { numRuns: sized(200, 10_000) },
    )
  })

  it('forgets full buckets', () => {
    let now = 0
    const limiter = new RateLimiter({ name: 'default', perMinute: 60, burst: 2 }, () => now)
    limiter.take('idle')
    now += 70_000
    limiter.take('busy')
    assert.equal(limiter.knows('idle'), false)
    assert.equal(limiter.knows('busy'), true)
  })
})
