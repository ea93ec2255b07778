import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { exceedsShape } from './json-shape.ts'

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
const keysOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? (Array.isArray(value) ? 0 : Object.keys(value).length) +
      Object.values(value).reduce((n: number, v) => n + keysOf(v), 0)
    : 0

describe('exceedsShape', () => {
  it('agrees with the parsed value, whatever is in strings', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), value => {
        const bytes = Buffer.from(JSON.stringify(value))
        const [depth, keys] = [depthOf(value), keysOf(value)]
        assert.equal(exceedsShape(bytes, depth, keys), false)
        if (depth > 0) assert.equal(exceedsShape(bytes, depth - 1, keys), true)
        if (keys > 0) assert.equal(exceedsShape(bytes, depth, keys - 1), true)
      }),
      { numRuns: sized(300, 20_000) },
    )
  })

  it('stops at 40,000 nested arrays', () => {
    assert.equal(exceedsShape(Buffer.from('['.repeat(40_000)), 64, 2000), true)
  })
})
