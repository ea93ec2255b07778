import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { SecretDetector } from './secret-detector.ts'

const SECRET = 'Canary-of-a-secret:0123/456+789?'

/** The ways in which secrets got into logs elsewhere, one each. */
const LEAKS: Readonly<Record<string, () => unknown>> = {
  'two levels down': () => ({ request: { body: { password: SECRET } } }),
  'in an array': () => ({ values: [1, ['x', SECRET]] }),
  'in another letter case': () => `password=${SECRET.toUpperCase()}`,
  'in a message': () => `Sign-in of ada@example.com with ${SECRET} failed`,
  'in the text of an error': () => new Error(`bad password ${SECRET}`),
  'in the cause of an error': () => new Error('a', { cause: new Error('b', { cause: { SECRET } }) }),
  'in err.config': () => Object.assign(new Error('a'), { config: { headers: { Authorization: `Bearer ${SECRET}` } } }),
  'in err.detail, not enumerable': () =>
    Object.defineProperty(new Error('a'), 'detail', { value: `Key (token)=(${SECRET})` }),
  'in the query of a URL': () => ({ url: new URL(`https://a.example.com/?token=${encodeURIComponent(SECRET)}`) }),
  'percent-encoded, all of it': () => [...Buffer.from(SECRET)].map(byte => `%${byte.toString(16)}`).join(''),
  'in base64': () => Buffer.from(SECRET).toString('base64'),
  'in base64, behind a user’s name': () => `Basic ${Buffer.from(`user:${SECRET}`).toString('base64')}`,
  'in base64url, between other bytes': () => Buffer.from(`{"a":"${SECRET}"}`).toString('base64url'),
  'in hex, as databases dump bytes': () => `\\x${Buffer.from(SECRET).toString('hex').toUpperCase()}`,
  'escaped as JSON': () => JSON.stringify(JSON.stringify({ a: `"${SECRET}"` })).replaceAll('C', '\\u0043'),
  'split over the lines of a header': () => ({ 'x-token': [SECRET.slice(0, 11), SECRET.slice(11)] }),
  'as the name of a field': () => ({ [SECRET]: 1 }),
  'in bytes, a map and a set': () => new Map([['a', new Set([Buffer.from(SECRET)])]]),
}

describe('the detector of secrets', () => {
  const detector = new SecretDetector()
  detector.add(SECRET)
  detector.add('another-secret-that-is-nowhere')

  for (const [where, leak] of Object.entries(LEAKS))
    it(`finds one ${where}`, () => {
      assert.deepEqual(detector.find(leak()), [SECRET])
      // So that it is found in what a log writes of it too.
      const written = { level: 'info', msg: 'x', sink: leak() }
      assert.deepEqual(detector.find(written), [SECRET])
    })

  it('finds nothing in what only resembles it, its digest included', () => {
    const digest = createHash('sha256').update(SECRET).digest('hex')
    for (const fine of ['', SECRET.slice(0, -1), digest, { a: [SECRET.slice(3)], b: new Error('x') }, null, 7])
      assert.deepEqual(detector.find(fine), [])
  })

  it('looks for nothing that occurs by chance', () => {
    const short = new SecretDetector()
    short.add('123456')
    assert.deepEqual(short.find('a 123456 b'), [])
  })
})
