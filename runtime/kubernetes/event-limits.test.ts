import assert from 'node:assert/strict'
import { EventLimits } from './event-limits.ts'

const MINUTE = 60_000

const setUp = () => {
  let now = 1_000_000
  const limits = new EventLimits(() => now)
  const taken = (uid: string, wanted: number): number =>
    Array.from({ length: wanted }, () => limits.take(uid)).filter(Boolean).length
  return { taken, pass: (ms: number) => (now += ms) }
}

describe('EventLimits', () => {
  it('lets a burst of 25 pass, then one every five minutes, for each object by itself', () => {
    const { taken, pass } = setUp()
    assert.equal(taken('a', 40), 25)
    assert.equal(taken('b', 1), 1)
    pass(4 * MINUTE)
    assert.equal(taken('a', 1), 0)
    pass(MINUTE)
    assert.equal(taken('a', 3), 1)
    pass(20 * MINUTE)
    assert.equal(taken('a', 10), 4)
  })

  it('never saves up more than a burst, and survives a clock that is set back', () => {
    const { taken, pass } = setUp()
    taken('a', 30)
    pass(10_000 * MINUTE)
    assert.equal(taken('a', 40), 25)
    pass(-10_000 * MINUTE)
    assert.equal(taken('a', 1), 0)
    pass(5 * MINUTE)
    assert.equal(taken('a', 2), 1)
  })
})
