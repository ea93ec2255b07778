import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { Retry } from './retry.ts'

describe('the pause before the next try', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  /** Whether the next try has come after so many milliseconds. */
  const tried = (retry: Retry): ((ms: number) => boolean) => {
    let came = false
    retry.later(() => (came = true))
    return ms => {
      mock.timers.tick(ms)
      return came
    }
  }

  it('doubles with every setback up to the longest, spread by a fifth, and is short again once all was well', () => {
    const retry = new Retry(100, 1000)
    for (const pause of [100, 200, 400, 800, 1000, 1000]) {
      const after = tried(retry)
      assert.equal(after(pause * 0.8 - 1), false, `earlier than ${pause * 0.8}`)
      assert.equal(after(pause * 0.4 + 2), true, `later than ${pause * 1.2}`)
    }
    retry.forget()
    assert.equal(tried(retry)(121), true)
  })

  it('is dropped when it is cancelled, or when another one begins', () => {
    const retry = new Retry(100, 1000)
    const first = tried(retry)
    const second = tried(retry)
    assert.deepEqual([first(1000), second(0)], [false, true])
    const third = tried(retry)
    retry.cancel()
    assert.equal(third(10_000), false)
  })
})
