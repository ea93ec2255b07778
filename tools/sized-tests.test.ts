import assert from 'node:assert/strict'
import { sizedTests } from './sized-tests.ts'

describe('the tests that make verify runs', () => {
  it('are those whose n is larger there, however far from the file the size is asked for', () => {
    const found = sizedTests()
    for (const sized of [
      'apiserver/test/fuzz.test.ts',
      // By its contract alone.
      'apiserver/dispatch/replicas.pg.test.ts',
    ])
      assert.ok(found.includes(sized), sized)
    for (const other of ['apiserver/auth/policy.test.ts', 'tools/sized-tests.test.ts'])
      assert.ok(!found.includes(other), other)
  })
})
