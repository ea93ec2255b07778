import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { DelayHeap } from './delay-heap.ts'

describe('DelayHeap', () => {
  it('takes keys in the order of their times, whatever order they came in', () => {
    const entry = fc.record({ key: fc.nat(40).map(String), dueAt: fc.nat(100), priority: fc.constantFrom(-100, 0, 10) })
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 300, size: 'max' }), fc.nat(100), (entries, now) => {
        const heap = new DelayHeap()
        const earliest = new Map<string, { dueAt: number; priority: number }>()
        for (const { key, dueAt, priority } of entries) {
          heap.add(key, dueAt, priority)
          const there = earliest.get(key) ?? { dueAt, priority }
          earliest.set(key, { dueAt: Math.min(there.dueAt, dueAt), priority: Math.max(there.priority, priority) })
        }
        assert.equal(heap.size, earliest.size)
        const times = [...earliest.values()].map(({ dueAt }) => dueAt)
        assert.equal(heap.nextDueAt(), times.length === 0 ? undefined : Math.min(...times))
        const due = heap.takeDue(now)
        assert.deepEqual(
          due.map(({ dueAt }) => dueAt),
          times.filter(time => time <= now).sort((a, b) => a - b),
        )
        for (const { key, dueAt, priority } of due) assert.deepEqual(earliest.get(key), { dueAt, priority })
        assert.equal(new Set(due.map(({ key }) => key)).size, due.length)
        assert.equal(heap.size, earliest.size - due.length)
      }),
      { numRuns: sized(300, 5_000) },
    )
  })

  it('keeps its size although a key is moved forward again and again', () => {
    const heap = new DelayHeap()
    for (let dueAt = 100_000; dueAt > 0; dueAt -= 1) heap.add('a', dueAt, 0)
    for (let dueAt = 1; dueAt < 100_000; dueAt += 1) heap.add('a', dueAt, 0)
    assert.ok(heap.held < 100, `${heap.held} entries for one key`)
    assert.deepEqual(
      heap.takeDue(1).map(({ key }) => key),
      ['a'],
    )
    assert.equal(heap.nextDueAt(), undefined)
  })
})
