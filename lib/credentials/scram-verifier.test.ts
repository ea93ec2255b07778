import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { scramVerifier } from './scram-verifier.ts'

/** The exchange of RFC 7677, section 3. */
const RFC = {
  password: 'pencil',
  salt: 'W22ZaJ0SNY7soEsUEjb6gQ==',
  message: [
    'n=user,r=rOprNGfwEbeRWgbNEkqO',
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  ].join(','),
  clientProof: 'dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
  serverSignature: '6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
}

describe('scramVerifier', () => {
  it('holds the keys that accept the RFC’s exchange and answer it', async () => {
    const verifier = await scramVerifier(RFC.password, Buffer.from(RFC.salt, 'base64'))
    const [, salt, stored, server] = /^SCRAM-SHA-256\$4096:([^$]+)\$([^:]+):(.+)$/.exec(verifier)!
    assert.equal(salt, RFC.salt)
    const hmac = (key: string): Buffer => createHmac('sha256', Buffer.from(key, 'base64')).update(RFC.message).digest()
    const signature = hmac(stored!)
    const clientKey = Buffer.from(RFC.clientProof, 'base64').map((byte, index) => byte ^ signature[index]!)
    assert.equal(createHash('sha256').update(clientKey).digest('base64'), stored)
    assert.equal(hmac(server!).toString('base64'), RFC.serverSignature)
  })

  it('is another one each time', async () => {
    assert.notEqual(await scramVerifier('secret'), await scramVerifier('secret'))
  })

  it('refuses what would need SASLprep', async () => {
    for (const password of ['', 'naïve', 'with space', 'tab\t'])
      await assert.rejects(scramVerifier(password), RangeError, password)
  })
})
