import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testAccount, testFolder } from '../../../testkit/server-files.ts'
import { ensureServerTls, isLoopback, type TlsOptions } from './server-tls.ts'

const DAY_MS = 86_400_000
const NOW = new Date('2026-11-27T12:00:00Z')
const later = (days: number): Date => new Date(NOW.getTime() + days * DAY_MS)

describe('the certificate of the single box', () => {
  let options: TlsOptions
  beforeEach(() => {
    const folder = testFolder()
    options = {
      folder: join(folder, 'tls'),
      secretsFolder: join(folder, 'secrets'),
      account: testAccount(),
      host: 'db.example.org',
    }
  })

  it('is made once, and kept as long as it is good', async () => {
    const first = await ensureServerTls(options, NOW)
    assert.equal(first.renewed, true)
    const again = await ensureServerTls(options, later(300))
    assert.deepEqual(again, { ...first, renewed: false })
  })

  it('is made anew before it ends, under the same authority', async () => {
    const first = await ensureServerTls(options, NOW)
    const before = readFileSync(first.certificateFile, 'utf8')
    const second = await ensureServerTls(options, later(350))
    assert.equal(second.renewed, true)
    assert.equal(second.caCertificate, first.caCertificate)
    const renewed = new X509Certificate(readFileSync(second.certificateFile))
    assert.notEqual(renewed.toString(), before)
    assert.ok(Date.parse(renewed.validTo) > later(700).getTime())
    assert.equal(renewed.verify(new X509Certificate(second.caCertificate).publicKey), true)
  })

  it('is made anew for another name, and when half of the pair is gone or foreign', async () => {
    const first = await ensureServerTls(options, NOW)
    const renamed = await ensureServerTls({ ...options, host: '192.0.2.9' }, NOW)
    assert.equal(renamed.renewed, true)
    assert.equal(new X509Certificate(readFileSync(renamed.certificateFile)).checkIP('192.0.2.9'), '192.0.2.9')
    rmSync(first.keyFile)
    assert.equal((await ensureServerTls({ ...options, host: '192.0.2.9' }, NOW)).renewed, true)
    writeFileSync(first.certificateFile, first.caCertificate)
    assert.equal((await ensureServerTls({ ...options, host: '192.0.2.9' }, NOW)).renewed, true)
  })

  it('has its keys closed to others, and the authority’s to Postgres too', async () => {
    const { keyFile } = await ensureServerTls(options, NOW)
    assert.equal(statSync(keyFile).mode & 0o7777, testAccount() === undefined ? 0o600 : 0o640)
    assert.equal(statSync(options.secretsFolder).mode & 0o7777, 0o700)
    assert.equal(statSync(join(options.secretsFolder, 'postgres-ca.key')).mode & 0o7777, 0o600)
  })

  it('is refused when authority and key do not belong together', async () => {
    await ensureServerTls(options, NOW)
    const other = { ...options, folder: `${options.folder}2`, secretsFolder: `${options.secretsFolder}2` }
    await ensureServerTls(other, NOW)
    writeFileSync(join(options.folder, 'ca.crt'), readFileSync(join(other.folder, 'ca.crt')))
    await assert.rejects(ensureServerTls(options, NOW), /belongs to another authority/)
  })

  it('is not needed on loopback alone', () => {
    const answers = ['127.0.0.1', '127.1.2.3', '::1', '0.0.0.0', '::', '192.0.2.1', 'localhost'].map(isLoopback)
    assert.deepEqual(answers, [true, true, true, false, false, false, false])
  })
})
