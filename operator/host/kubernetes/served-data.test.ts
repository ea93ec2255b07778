import assert from 'node:assert/strict'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { Claim, Secret } from './object-types.ts'
import { wasServed } from './served-data.ts'

const claim = (initialized: boolean): Claim => ({
  metadata: { annotations: initialized ? { [ANNOTATIONS.initialized]: 'true' } : {} },
})
const secret = (allows: boolean): Secret => ({ data: allows ? { 'new-data': btoa('allowed') } : {} })

describe('whether data was ever served', () => {
  it('either witness says, whatever became of the other one', () => {
    for (const stands of [true, false]) {
      for (const other of [undefined, secret(true), secret(false)])
        assert.equal(wasServed({ claim: claim(true), stands }, other), true)
      for (const other of [undefined, claim(false), claim(true)])
        assert.equal(wasServed({ claim: other, stands }, secret(false)), true)
    }
  })

  it('is no while both say so, and while the one that is left does', () => {
    for (const stands of [true, false]) {
      assert.equal(wasServed({ claim: claim(false), stands }, secret(true)), false)
      assert.equal(wasServed({ claim: undefined, stands }, secret(true)), false)
      assert.equal(wasServed({ claim: claim(false), stands }, undefined), false)
    }
  })

  it('is yes where both are gone from under a StatefulSet, and no where nothing was ever made', () => {
    assert.equal(wasServed({ claim: undefined, stands: true }, undefined), true)
    assert.equal(wasServed({ claim: undefined, stands: false }, undefined), false)
  })
})
