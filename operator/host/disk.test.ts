import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isFull, judgeDisk, readDisk } from './disk.ts'

const GIB = 2 ** 30

describe('room on a disk', () => {
  it('is low below a tenth of a small disk and below 2 GiB of a big one', () => {
    assert.equal(judgeDisk(0.09 * GIB, GIB, false).low, true)
    assert.equal(judgeDisk(0.11 * GIB, GIB, false).low, false)
    assert.equal(judgeDisk(1.9 * GIB, 500 * GIB, false).low, true)
    assert.equal(judgeDisk(2.1 * GIB, 500 * GIB, false).low, false)
  })

  it('does not flap: between the marks it stays what it was', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(1e9), (share, total) => {
        const [low, fine] = [true, false].map(was => judgeDisk(share * total, total, was).low)
        // What is low when it was fine is low in any case, and the other way round.
        assert.ok(!fine || low)
      }),
    )
  })

  it('is full before nothing at all is left, and warned of before it is full', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e13 }), fc.double({ min: 0, max: 1, noNaN: true }), (total, share) => {
        const disk = judgeDisk(share * total, total, false)
        if (isFull(disk)) assert.equal(disk.low, true)
      }),
    )
    assert.equal(isFull({ freeBytes: 0, totalBytes: GIB, low: true }), true)
  })

  it('is read from the system, and unknown where there is nothing to ask', async () => {
    const disk = await readDisk('/', false)
    assert.ok(disk !== undefined && disk.totalBytes > disk.freeBytes)
    assert.equal(await readDisk('/nonexistent', false), undefined)
  })
})
