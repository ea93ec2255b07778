import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { hasDrifted, quantity } from './drift.ts'

describe('drift', () => {
  const rows: readonly (readonly [why: string, applied: unknown, live: unknown, drifted: boolean])[] = [
    ['what others put beside it is theirs', { a: 1 }, { a: 1, b: 2 }, false],
    ['deep inside too', { a: { b: [{ c: 1 }] } }, { a: { b: [{ c: 1, d: 2 }], e: 3 } }, false],
    ['a changed value', { a: 1 }, { a: 2 }, true],
    ['a missing one', { a: { b: 1 } }, { a: {} }, true],
    ['an object that is gone', { a: 1 }, undefined, true],
    ['a list that grew', { a: [1] }, { a: [1, 2] }, true],
    ['a list that shrank', { a: [1, 2] }, { a: [1] }, true],
    ['what is empty is left out by the server', { egress: [], labels: {} }, {}, false],
    ['but not what is not', { egress: [1] }, {}, true],
    ['the same quantity in other words', { storage: '1073741824' }, { storage: '1Gi' }, false],
    ['another quantity', { storage: '1073741824' }, { storage: '1G' }, true],
    ['thousandths of a core', { cpu: '1000m' }, { cpu: '1' }, false],
    ['texts that are no quantities', { image: 'a:17' }, { image: 'a:18' }, true],
    ['a number is not its text', { port: 5432 }, { port: '5432' }, true],
  ]
  for (const [why, applied, live, drifted] of rows)
    it(`${drifted ? 'is' : 'is not'}: ${why}`, () => assert.equal(hasDrifted(applied, live), drifted))

  it('is never between an object and itself, nor between it and one with more in it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (object, more) => {
        assert.equal(hasDrifted(object, structuredClone(object)), false)
        if (!(more in object)) assert.equal(hasDrifted(object, { ...object, [more]: 1 }), false)
      }),
      { numRuns: sized(200, 3000) },
    )
  })

  it('reads quantities as Kubernetes writes them', () => {
    assert.deepEqual(['1Gi', '1.5Gi', '500m', '2', '1G'].map(quantity), [2 ** 30, 1.5 * 2 ** 30, 0.5, 2, 1e9])
    assert.ok(Number.isNaN(quantity('lots')))
    assert.ok(Number.isNaN(quantity(5)))
  })
})
