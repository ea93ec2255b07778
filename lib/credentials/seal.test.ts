import assert from 'node:assert/strict'
import { createCipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { createSealer, SealError, type SealPlace } from './seal.ts'

const MASTER = randomBytes(32)
const NEXT_MASTER = randomBytes(32)
const PLACE: SealPlace = { table: 'credentials', column: 'sealed', rowId: 'row-1', version: 1n }
const sealer = createSealer({ current: MASTER })
const refused = (run: () => unknown): void => assert.throws(run, SealError)

describe('createSealer', () => {
  it('opens what it sealed, whatever the text, and never seals twice alike', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), secret => {
        const [once, again] = [sealer.seal(PLACE, secret), sealer.seal(PLACE, secret)]
        assert.notEqual(once, again)
        assert.equal(sealer.open(PLACE, once), secret)
        assert.match(once, /^v1\.[0-9a-f]{8}(\.[A-Za-z0-9_-]*){4}$/)
        if (secret.length > 8) assert.ok(!once.includes(Buffer.from(secret).toString('base64url')))
      }),
      { numRuns: sized(50, 1000) },
    )
  })

  it('opens nowhere but in its place', () => {
    const sealed = sealer.seal(PLACE, 'secret')
    for (const change of [{ table: 'other' }, { column: 'other' }, { rowId: 'row-2' }, { version: 2n }])
      refused(() => sealer.open({ ...PLACE, ...change }, sealed))
    // The parts of a place cannot flow into each other.
    const shifted = sealer.seal({ ...PLACE, table: 'a', column: 'bc' }, 'secret')
    refused(() => sealer.open({ ...PLACE, table: 'ab', column: 'c' }, shifted))
  })

  it('refuses every single changed character, and tags cut short', () => {
    const sealed = sealer.seal(PLACE, 'secret')
    for (let at = 0; at < sealed.length; at++) {
      const other = sealed[at] === 'A' ? 'B' : 'A'
      refused(() => sealer.open(PLACE, sealed.slice(0, at) + other + sealed.slice(at + 1)))
    }
    const parts = sealed.split('.')
    const cut = Buffer.from(parts[5]!, 'base64url').subarray(0, 4).toString('base64url')
    refused(() => sealer.open(PLACE, [...parts.slice(0, 5), cut].join('.')))
    for (const malformed of [
      '',
      'v1',
      `${sealed}.`,
      `${sealed}=`,
      sealed.replace('v1', 'v2'),
      parts.slice(0, 5).join('.'),
    ])
      refused(() => sealer.open(PLACE, malformed))
  })

  it('refuses another master key, opens with a previous one, and rewraps without touching the secret', () => {
    const sealed = sealer.seal(PLACE, 'secret')
    refused(() => createSealer({ current: NEXT_MASTER }).open(PLACE, sealed))
    const rotated = createSealer({ current: NEXT_MASTER, previous: [MASTER] })
    assert.equal(rotated.open(PLACE, sealed), 'secret')
    const rewrapped = rotated.rewrap(PLACE, sealed)
    assert.equal(rewrapped.split('.')[1], rotated.kid)
    assert.deepEqual(rewrapped.split('.').slice(3), sealed.split('.').slice(3))
    assert.equal(createSealer({ current: NEXT_MASTER }).open(PLACE, rewrapped), 'secret')
    refused(() => sealer.open(PLACE, rewrapped))
    refused(() => rotated.rewrap({ ...PLACE, rowId: 'row-2' }, sealed))
  })

  it('refuses a master key under 32 bytes, current or previous', () => {
    refused(() => createSealer({ current: Buffer.alloc(31) }))
    refused(() => createSealer({ current: MASTER, previous: [Buffer.alloc(16)] }))
  })

  it('opens a value put together by hand from the documented format', () => {
    const kek = Buffer.from(hkdfSync('sha256', MASTER, '', 'kek', 32))
    const aad = Buffer.from('["v1","credentials","sealed","row-1","1"]')
    const gcm = (key: Buffer, plain: Buffer): Buffer[] => {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(aad)
      return [iv, Buffer.concat([cipher.update(plain), cipher.final()]), cipher.getAuthTag()]
    }
    const key = randomBytes(32)
    const parts = [Buffer.concat(gcm(kek, key)), ...gcm(key, Buffer.from('by hand'))]
    const kid = createHash('sha256').update(kek).digest('hex').slice(0, 8)
    const sealed = ['v1', kid, ...parts.map(part => part.toString('base64url'))].join('.')
    assert.equal(sealer.open(PLACE, sealed), 'by hand')
  })
})
