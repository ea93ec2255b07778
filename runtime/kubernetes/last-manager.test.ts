import assert from 'node:assert/strict'
import { lastManagerOf, type ManagedFields } from './last-manager.ts'

const at = (second: number): string => `2026-01-01T00:00:0${second}Z`
const made = { '.': {}, 'f:color': {} }
const changed = { 'f:size': {} }

const entry = (manager: string, second: number, spec?: object, subresource?: string): ManagedFields => ({
  manager,
  time: at(second),
  ...(subresource !== undefined && { subresource }),
  fieldsV1: spec === undefined ? {} : { 'f:spec': spec },
})

describe('lastManagerOf', () => {
  for (const [why, entries, last] of [
    ['nobody', [], undefined],
    ['who made it', [entry('first', 1, made)], 'first'],
    ['who changed it later', [entry('second', 2, changed), entry('first', 1, made)], 'second'],
    ['not who changed labels or status', [entry('a', 1, made), entry('b', 2), entry('c', 3, changed, 'status')], 'a'],
    ['within one second not who made it', [entry('b', 1, changed), entry('a', 1, made)], 'b'],
    ['within one second not who made it, in either order', [entry('a', 1, made), entry('b', 1, changed)], 'b'],
    ['within one second who is listed last', [entry('a', 1, changed), entry('b', 1, changed)], 'b'],
    ['who made it, when it changed it again', [entry('a', 2, made), entry('b', 1, changed)], 'a'],
  ] as const)
    it(`says ${why}`, () => assert.equal(lastManagerOf(entries), last))

  it('says nobody where there are no entries', () => assert.equal(lastManagerOf(undefined), undefined))
})
