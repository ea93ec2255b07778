import assert from 'node:assert/strict'
import { hash, verify } from '@node-rs/argon2'
import { decoyHash, isCurrent, readArgon2Hash } from './argon2-hash.ts'

const SALT = 'Ebv8V0/fZiDz8OuDGvsCiQ'
const HASH = 'BashT8msMmS+SVIrRlOEPX1p+tqQiRdViHV0vC728kg'
const phc = (more: { kind?: string; params?: string; salt?: string; hash?: string } = {}): string => {
  const { kind = 'argon2id', params = 'm=19456,t=2,p=1', salt = SALT, hash: sum = HASH } = more
  return `$${kind}$v=19$${params}$${salt}$${sum}`
}

describe('an argon2 hash', () => {
  it('is read as what it costs', () => {
    assert.deepEqual(readArgon2Hash(phc()), { memory: 19_456, passes: 2, lanes: 1 })
    assert.deepEqual(readArgon2Hash(phc({ params: 'm=262144,t=10,p=4' })), { memory: 262_144, passes: 10, lanes: 4 })
  })

  for (const [what, text] of [
    ['empty', ''],
    ['garbage', 'hunter2'],
    ['of another kind', phc({ kind: 'argon2i' })],
    ['of another version', phc().replace('v=19', 'v=16')],
    ['weak in memory', phc({ params: 'm=19455,t=2,p=1' })],
    ['weak in passes', phc({ params: 'm=19456,t=1,p=1' })],
    ['of four GiB', phc({ params: 'm=4194304,t=2,p=1' })],
    ['of many passes', phc({ params: 'm=19456,t=11,p=1' })],
    ['of many lanes', phc({ params: 'm=19456,t=2,p=5' })],
    ['of no lanes', phc({ params: 'm=19456,t=2,p=0' })],
    ['with a short salt', phc({ salt: 'YWJj' })],
    ['with a short hash', phc({ hash: 'YWJj' })],
    ['with a huge hash', phc({ hash: 'A'.repeat(1000) })],
    ['with other parameters', phc({ params: 'm=19456,t=2,p=1,keyid=x' })],
    ['with a line behind it', `${phc()}\n`],
  ] as const)
    it(`is none when it is ${what}`, () => assert.equal(readArgon2Hash(text), undefined))

  it('is current when it was made with today’s cost, as the decoy is, which no password fits', async () => {
    const made = await hash('x'.repeat(12), { memoryCost: 19_456, timeCost: 2, parallelism: 1 })
    assert.ok(isCurrent(made))
    assert.ok(!isCurrent(phc({ params: 'm=20000,t=2,p=1' })) && !isCurrent('x'))
    const decoy = decoyHash()
    assert.ok(isCurrent(decoy))
    assert.notEqual(decoyHash(), decoy)
    assert.equal(await verify(decoy, 'x'.repeat(12)), false)
  })
})
