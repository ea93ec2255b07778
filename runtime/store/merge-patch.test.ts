import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { asJson, mergePatch, sameJson } from './merge-patch.ts'

describe('mergePatch', () => {
  // The test cases of RFC 7396, appendix A.
  for (const [target, patch, result] of [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])
    it(`${JSON.stringify(target)} with ${JSON.stringify(patch)} is ${JSON.stringify(result)}`, () => {
      assert.deepEqual(mergePatch(target, patch), result)
    })

  it('takes undefined for absent, and a member called __proto__ for a member', () => {
    assert.deepEqual(mergePatch({ a: 1 }, { a: undefined }), { a: 1 })
    const patched = mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}'))
    assert.equal(JSON.stringify(patched), '{"__proto__":{"polluted":true}}')
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  })

  it('changes neither argument, is idempotent, and applying the result changes nothing', () => {
    const value = fc.jsonValue({ maxDepth: 3 })
    fc.assert(
      fc.property(value, value, (target, patch) => {
        const before = JSON.stringify([target, patch])
        const once = mergePatch(target, patch)
        assert.equal(JSON.stringify([target, patch]), before)
        assert.ok(sameJson(mergePatch(once, patch), once))
      }),
      { numRuns: sized(200, 5000) },
    )
  })
})

describe('sameJson', () => {
  for (const [a, b, same] of [
    [{ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 }, true],
    [[1, 2], [2, 1], false],
    [{ a: null }, {}, false],
    [{ a: '1' }, { a: 1 }, false],
    [[], {}, false],
  ] as const)
    it(`says ${same} for ${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => assert.equal(sameJson(a, b), same))
})

describe('asJson', () => {
  it('copies what JSON would carry', () => {
    const given = { a: undefined, b: new Date(0), c: [undefined, -0] }
    assert.deepEqual(asJson(given), { b: '1970-01-01T00:00:00.000Z', c: [null, 0] })
    assert.equal(asJson(undefined), undefined)
  })
})
