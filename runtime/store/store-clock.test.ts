import assert from 'node:assert/strict'
import { ManualClock } from '../../testkit/manual-clock.ts'
import { StoreClock } from './store-clock.ts'

const NOON = Date.parse('2026-11-27T12:00:00Z')

describe('the clock of a store', () => {
  it('is this machine’s until the store has said anything', () => {
    assert.equal(new StoreClock(new ManualClock(), () => NOON).now(), NOON)
  })

  it('goes on from what the store said, whatever this machine believes, and is never ahead of it', async () => {
    const clock = new ManualClock()
    const store = new StoreClock(clock, () => NOON + 3_600_000)
    // Said in whole seconds, as an HTTP date is.
    for (let ms = 0; ms < 10_000; ms += 130) {
      store.note(NOON + Math.floor(ms / 1000) * 1000)
      const aheadMs = store.now() - (NOON + ms)
      assert.ok(aheadMs <= 0 && aheadMs > -1000, `${aheadMs} ms at ${ms}`)
      await clock.advance(130)
    }
  })

  it('never goes back by less than the store’s clock does, and follows that', async () => {
    const clock = new ManualClock()
    const store = new StoreClock(clock)
    store.note(NOON + 999)
    await clock.advance(10)
    store.note(NOON)
    assert.equal(store.now(), NOON + 1009)
    store.note(NOON - 3_600_000)
    assert.equal(store.now(), NOON - 3_600_000)
    store.note(Number.NaN)
    assert.equal(store.now(), NOON - 3_600_000)
  })
})
