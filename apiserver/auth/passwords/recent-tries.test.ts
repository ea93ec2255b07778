import assert from 'node:assert/strict'
import { RecentTries } from './recent-tries.ts'

describe('recent tries', () => {
  let now = 0
  let tries: RecentTries
  beforeEach(() => {
    now = 1_000
    tries = new RecentTries(() => now)
  })

  const enter = (address: string, account: string): readonly [number, number] => {
    const { ofAddress, ofAccount } = tries.enter(address, account)
    return [ofAddress, ofAccount]
  }
  const ofAddress = (address: string): number => tries.enter(address, `${now} of ${address}`).ofAddress

  it('are counted for each address and for each account', () => {
    assert.deepEqual(
      [enter('a', 'ada'), enter('a', 'ada'), enter('b', 'ada'), enter('a', 'bob'), enter('c', 'cy')],
      [
        [0, 0],
        [1, 1],
        [0, 2],
        [2, 0],
        [0, 0],
      ],
    )
  })

  it('are remembered for five minutes at least and ten at most', () => {
    ofAddress('a')
    now += 300_000
    assert.equal(ofAddress('a'), 1)
    now += 300_000
    assert.equal(ofAddress('a'), 1)
    now += 300_000
    assert.equal(ofAddress('a'), 1)
    now += 600_000
    assert.equal(ofAddress('a'), 0)
  })

  it('of addresses without number do not pile up', () => {
    ofAddress('mine')
    for (let n = 0; n < 24_000; n++) enter(`${n}`, `${n}`)
    assert.equal(ofAddress('mine'), 1)
    for (let n = 0; n < 60_000; n++) enter(`more ${n}`, `more ${n}`)
    assert.equal(ofAddress('mine'), 0)
  })

  it('are one when nobody had time for them and they come again as they were told, however often', () => {
    assert.deepEqual(tries.enter('a', 'ada'), { ofAddress: 0, ofAccount: 0, isAgain: false })
    for (let round = 0; round < 5; round++) {
      tries.turnAway('a', 'ada')
      now += 1_000
      assert.deepEqual(tries.enter('a', 'ada'), { ofAddress: 0, ofAccount: 0, isAgain: true })
    }
    // Somebody had time for the last one.
    now += 1_000
    assert.deepEqual(tries.enter('a', 'ada'), { ofAddress: 1, ofAccount: 1, isAgain: false })
  })

  it('that were right count no more', () => {
    enter('a', 'ada')
    enter('a', 'ada')
    tries.takeBack('a', 'ada')
    assert.deepEqual(enter('a', 'ada'), [1, 1])
    tries.takeBack('b', 'bob')
    assert.deepEqual(enter('b', 'bob'), [0, 0])
  })

  it('are others when they come sooner, for another account or from another address, or after nobody remembers', () => {
    const again = (address: string, account: string, afterMs: number): boolean => {
      tries.turnAway('a', 'ada')
      now += afterMs
      return tries.enter(address, account).isAgain
    }
    assert.deepEqual(
      [
        again('a', 'ada', 500),
        again('a', 'bob', 1_000),
        again('b', 'ada', 1_000),
        again('a', 'ada', 1_000),
        again('a', 'ada', 900_000),
      ],
      [false, false, false, true, true],
    )
  })
})
