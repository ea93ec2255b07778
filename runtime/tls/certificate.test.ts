import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, createServer, type TlsOptions } from 'node:tls'
import { freePorts } from '../../testkit/free-port.ts'
import { testFolder } from '../../testkit/server-files.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { type Identity, makeAuthority, makeServerIdentity } from './certificate.ts'

const NOW = new Date('2026-11-27T12:00:00Z')
const parsed = (authority: Identity) => ({
  certificate: new X509Certificate(authority.certificate),
  key: createPrivateKey(authority.key),
})

describe('certificates', () => {
  const authority = makeAuthority('svc test authority', 3650, NOW)
  const server = makeServerIdentity(parsed(authority), ['db.example.org', '192.0.2.7', '2001:db8::7'], 397, NOW)
  const certificate = new X509Certificate(server.certificate)

  it('of a server are signed by the authority, and good for its names and addresses only', () => {
    const root = new X509Certificate(authority.certificate)
    assert.equal(certificate.verify(root.publicKey), true)
    assert.equal(certificate.checkIssued(root), true)
    assert.equal(certificate.checkPrivateKey(createPrivateKey(server.key)), true)
    assert.equal(certificate.checkHost('db.example.org'), 'db.example.org')
    assert.equal(certificate.checkIP('192.0.2.7'), '192.0.2.7')
    assert.equal(certificate.checkIP('2001:db8::7'), '2001:db8::7')
    assert.equal(certificate.checkHost('other.example.org'), undefined)
    assert.equal(certificate.checkIP('192.0.2.8'), undefined)
    assert.deepEqual([certificate.ca, root.ca], [false, true])
    assert.equal(new Date(certificate.validTo).toISOString(), '2027-12-29T12:00:00.000Z')
  })

  it('have P-256 keys, and signatures over SHA-256', () => {
    for (const { certificate: pem, key } of [authority, server]) {
      const { publicKey, signatureAlgorithm } = new X509Certificate(pem)
      for (const { asymmetricKeyType, asymmetricKeyDetails } of [publicKey, createPrivateKey(key)])
        assert.deepEqual([asymmetricKeyType, asymmetricKeyDetails?.namedCurve], ['ec', 'prime256v1'])
      assert.equal(signatureAlgorithm, 'ecdsa-with-SHA256')
    }
  })

  it('outlive 2049, where dates are written another way', () => {
    const late = new X509Certificate(makeAuthority('late', 3650, new Date('2048-01-01T00:00:00Z')).certificate)
    assert.equal(new Date(late.validTo).getUTCFullYear(), 2057)
  })

  it('carry distinct serial numbers', () => {
    const serials = Array.from(
      { length: 20 },
      () => new X509Certificate(makeAuthority('x', 1, NOW).certificate).serialNumber,
    )
    assert.equal(new Set(serials).size, 20)
  })

  it('pass a strict check by OpenSSL', function () {
    if (spawnSync('openssl', ['version']).status !== 0) skipBecause(this, 'no openssl on this machine')
    const folder = testFolder()
    const [ca, leaf] = [join(folder, 'ca.crt'), join(folder, 'server.crt')]
    writeFileSync(ca, authority.certificate)
    writeFileSync(leaf, server.certificate)
    const args = ['verify', '-x509_strict', '-purpose', 'sslserver', '-verify_hostname', 'db.example.org']
    const epoch = String(NOW.getTime() / 1000)
    const { stdout, stderr } = spawnSync('openssl', [...args, '-attime', epoch, '-CAfile', ca, leaf], {
      encoding: 'utf8',
    })
    assert.match(stdout, /OK/, stderr)
  })

  it('serve a TLS connection that verifies name and authority, and no other', async () => {
    const today = makeAuthority('svc test authority', 10, new Date())
    const own = makeServerIdentity(parsed(today), ['localhost'], 10, new Date())
    const options: TlsOptions = { cert: own.certificate, key: own.key }
    const listener = createServer(options, socket => socket.end('hello'))
    listener.on('tlsClientError', () => undefined)
    const port = await freePorts()
    await new Promise<void>(resolve => listener.listen(port, '127.0.0.1', resolve))
    const greet = (ca: string, servername: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port, ca, servername })
        socket.once('error', reject)
        socket.once('data', chunk => {
          resolve(String(chunk))
          socket.destroy()
        })
      })
    try {
      assert.equal(await greet(today.certificate, 'localhost'), 'hello')
      await assert.rejects(greet(today.certificate, 'elsewhere'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
      await assert.rejects(greet(authority.certificate, 'localhost'))
    } finally {
      listener.close()
    }
  })
})
