import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sharedParts } from './shared-parts.ts'

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

describe('shared parts', () => {
  const container = { name: 'postgres', command: ['postgres', '-D', '/data'], probe: { periodSeconds: 1 } }
  const object = (name: string, size: number) => ({ name, spec: { size, containers: [copy(container)] } })

  it('are one for all that follow one another, and what differs is each one’s own', () => {
    const share = sharedParts()
    const [one, two, three] = [object('a', 1), object('b', 2), object('c', 2)].map(each => share(each))
    assert.deepEqual([one, two, three], [object('a', 1), object('b', 2), object('c', 2)])
    assert.equal(one?.spec.containers, two?.spec.containers)
    assert.equal(two?.spec, three?.spec)
    assert.notEqual(one?.spec, two?.spec)
  })

  it('are whole values where these are equal', () => {
    const share = sharedParts()
    assert.equal(share(object('a', 1)), share(object('a', 1)))
  })

  it('differ where anything does', () => {
    const values = [
      {},
      [],
      { a: 1 },
      { a: '1' },
      { a: null },
      { a: 1, b: 2 },
      { b: 2, a: 1 },
      { 0: 1 },
      [1],
      [1, 2],
      [[1]],
      null,
    ]
    for (const model of values)
      for (const value of values) {
        const share = sharedParts()
        share(copy(model))
        assert.deepEqual(share(copy(value)), value)
      }
  })

  it('make a value that is equal to what it was, whatever that is and whatever was before', () => {
    const share = sharedParts()
    fc.assert(fc.property(fc.jsonValue(), value => assert.deepEqual(share(copy(value)), copy(value))))
  })
})
