import assert from 'node:assert/strict'
import { KnownTokens } from './known-tokens.ts'

describe('what is known of tokens', () => {
  const make = (most = 3) => {
    const clock = { now: 0 }
    const asked: string[] = []
    const known = new KnownTokens<string>({ goodMs: 30_000, badMs: 5000, most }, () => clock.now)
    const find = (key: string, until: number | undefined = 1e9) =>
      known.find(key, async () => {
        asked.push(key)
        return until === 0 ? undefined : { value: `of ${key}`, untilMs: until }
      })
    return { clock, asked, known, find }
  }

  it('lasts half a minute, and never longer than the token', async () => {
    const { clock, asked, find } = make()
    assert.equal(await find('a'), 'of a')
    await find('b', 10_000)
    clock.now = 9999
    await Promise.all([find('a'), find('b')])
    assert.deepEqual(asked, ['a', 'b'])
    clock.now = 10_000
    await find('b', 10_001)
    clock.now = 29_999
    await find('a')
    assert.deepEqual(asked, ['a', 'b', 'b'])
    clock.now = 30_000 // also when it was used a moment ago
    await find('a')
    assert.deepEqual(asked, ['a', 'b', 'b', 'a'])
  })

  it('lasts five seconds of a token that is not good', async () => {
    const { clock, asked, find } = make()
    assert.equal(await find('x', 0), undefined)
    clock.now = 4999
    assert.equal(await find('x', 0), undefined)
    assert.equal(asked.length, 1)
    clock.now = 5000
    assert.equal(await find('x'), 'of x')
  })

  it('is asked once by all who come at once, and not remembered when it fails', async () => {
    const { known } = make()
    let count = 0
    const fail = (): Promise<undefined> => {
      count++
      return Promise.reject(new Error('down'))
    }
    const settled = await Promise.allSettled(Array.from({ length: 20 }, () => known.find('a', fail)))
    assert.ok(settled.every(({ status }) => status === 'rejected'))
    assert.equal(count, 1)
    await assert.rejects(known.find('a', fail))
    assert.equal(count, 2)
  })

  it('forgets what was used longest ago, and junk takes no room from what is good', async () => {
    const { asked, find } = make()
    for (const key of ['a', 'b', 'c', 'a', 'd']) await find(key)
    for (let n = 0; n < 10; n++) await find(`junk${n}`, 0)
    asked.length = 0
    for (const key of ['a', 'c', 'd']) await find(key)
    assert.deepEqual(asked, [])
    await find('b')
    assert.deepEqual(asked, ['b'])
  })
})
