import assert from 'node:assert/strict'
import { stripTypeScriptTypes } from 'node:module'
import { FULL } from '../testkit/full.ts'
import { BUGS, type Bug } from './planted-bugs/bugs.ts'
import { MODEL_BUGS } from './planted-bugs/model-bugs.ts'
import { huntAll, readProduct, withBug } from './planted-bugs/plant.ts'

/** One a layer, the same in every run; all of them are `make planted-bugs`. */
const SOME = [
  'developers delete projects',
  'strangers come through',
  'scopes are not looked at',
  'sessions are owners’ wherever their user is a member',
  'revoked tokens work',
  'admins make owners',
]

const ALL = [...BUGS, ...MODEL_BUGS]

describe('planted bugs of authorization, and of what models are about', () => {
  it('fit the product: each changes one place that is there, and leaves a program', () => {
    for (const bug of ALL) {
      const planted = withBug(bug, readProduct(bug.file))
      assert.notEqual(planted, readProduct(bug.file), bug.what)
      // One that is no program is caught by no test.
      assert.doesNotThrow(() => stripTypeScriptTypes(planted), bug.what)
    }
    assert.equal(new Set(ALL.map(({ what }) => what)).size, ALL.length)
  })

  it('do not fit where what they change is gone, or is there twice', () => {
    const bug: Bug = { what: 'an example', file: 'a.ts', was: 'if (a)', now: '' }
    assert.equal(withBug(bug, 'if (a) b()'), ' b()')
    assert.throws(() => withBug(bug, 'if (c) b()'), /no longer fits a.ts: .* 0 times/)
    assert.throws(() => withBug(bug, 'if (a) b() else if (a) c()'), /2 times/)
  })

  if (FULL)
    it('are caught by the tests of authorization', async function () {
      this.timeout(900_000)
      const bugs = BUGS.filter(({ what }) => SOME.includes(what))
      assert.equal(bugs.length, SOME.length)
      const missed = (await huntAll(bugs, 2)).filter(({ caughtBy }) => caughtBy === undefined)
      assert.deepEqual(
        missed.map(({ bug }) => bug.what),
        [],
      )
    })
})
