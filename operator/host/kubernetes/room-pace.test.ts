import assert from 'node:assert/strict'
import { judgeDisk } from '../disk.ts'
import { LOOK_AT_MOST_MS, lookAgainMs } from './room-pace.ts'

const MINUTE = 60_000
const GIB = 2 ** 30
const disk = (free: number, total = 1): ReturnType<typeof judgeDisk> => judgeDisk(free * GIB, total * GIB, false)

describe('how soon a disk is looked at again', () => {
  it('is seldom with room, ever sooner with less, and every minute when it is nearly full', () => {
    assert.equal(lookAgainMs(disk(0.9), undefined, 0), LOOK_AT_MOST_MS)
    assert.equal(lookAgainMs(undefined, undefined, 0), LOOK_AT_MOST_MS)
    const paces = [0.6, 0.3, 0.2, 0.15, 0.11].map(free => lookAgainMs(disk(free), undefined, 0))
    assert.deepEqual(
      paces,
      [...paces].sort((a, b) => b - a),
    )
    assert.ok(paces.at(-1)! < 2 * MINUTE)
    assert.equal(lookAgainMs(disk(0.05), undefined, 0), MINUTE)
    assert.equal(lookAgainMs(disk(2.1, 500), undefined, 0), MINUTE)
  })

  it('comes before the warning is due where a disk fills at the pace that was seen', () => {
    for (const [before, now, sinceMinutes] of [
      [0.9, 0.5, 20],
      [0.6, 0.3, 5],
      [0.9, 0.89, 30],
    ] as const) {
      const perMs = (before - now) / (sinceMinutes * MINUTE)
      const nextMs = lookAgainMs(disk(now), disk(before), sinceMinutes * MINUTE)
      assert.ok(now - perMs * nextMs > 0.1, `${before} -> ${now}: at the next look it is nearly full already`)
    }
  })

  it('is not thrown off by a disk that grew or got room', () => {
    assert.equal(lookAgainMs(disk(0.9), disk(0.2), MINUTE), LOOK_AT_MOST_MS)
    assert.equal(lookAgainMs(disk(1.8, 2), disk(0.2), MINUTE), LOOK_AT_MOST_MS)
  })
})
