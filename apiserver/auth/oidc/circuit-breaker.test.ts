import assert from 'node:assert/strict'
import { CircuitBreaker } from './circuit-breaker.ts'

describe('a circuit breaker', () => {
  const make = () => {
    const clock = { now: 1000 }
    const breaker = new CircuitBreaker({ failures: 3, withinMs: 100, openMs: 50 }, () => clock.now)
    const fail = (): void => {
      assert.ok(breaker.admits())
      breaker.failed()
    }
    return { clock, breaker, fail }
  }

  it('opens after so many failures within a time, and not when they are further apart', () => {
    const { clock, breaker, fail } = make()
    for (let n = 0; n < 6; n++) {
      fail()
      clock.now += 60
    }
    assert.ok(breaker.admits())
    breaker.failed()
    fail()
    assert.ok(!breaker.admits())
    assert.equal(breaker.retrySeconds, 1)
  })

  it('lets one call try when its time is over, and closes when that did well', () => {
    const { clock, breaker, fail } = make()
    for (let n = 0; n < 3; n++) fail()
    clock.now += 49
    assert.ok(!breaker.admits())
    clock.now += 1
    assert.ok(breaker.admits())
    assert.ok(!breaker.admits())
    breaker.failed()
    assert.ok(!breaker.admits())
    clock.now += 50
    assert.ok(breaker.admits())
    breaker.succeeded()
    for (let n = 0; n < 5; n++) assert.ok(breaker.admits())
    // Those before are forgotten.
    fail()
    fail()
    assert.ok(breaker.admits())
  })
})
