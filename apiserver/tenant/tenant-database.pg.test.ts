import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import type { Endpoint } from '../../crds/environment.ts'
import type { LocalHost } from '../../operator/host/local/local-host.ts'
import { bringUp, newRef, openTestHost, TEST_CREDENTIALS } from '../../testkit/local-host.ts'
import { testFolder } from '../../testkit/server-files.ts'
import { measureUsage } from './measure-usage.ts'

describe('a session in a database that speaks TLS', () => {
  /** No way leads to it from anywhere, as to a name outside a NAT from behind it. */
  const HOST = 'db.example.invalid'
  const [home, otherHome] = [testFolder(), testFolder()]
  let host: LocalHost
  let endpoint: Endpoint
  before(async () => {
    host = await openTestHost(home, { reach: { listen: '0.0.0.0', host: HOST } })
    const observed = await bringUp(host, newRef())
    assert.ok(observed.endpoint)
    endpoint = observed.endpoint
  })
  after(async () => {
    await host.stopAll({ keepDatabases: false })
    for (const folder of [home, otherHome]) rmSync(folder, { recursive: true, force: true })
  })

  const measure = (more: { readonly host?: string; readonly caCertificate?: string | undefined }) =>
    measureUsage({
      endpoint: { ...endpoint, host: more.host ?? endpoint.host },
      credential: TEST_CREDENTIALS.ops,
      caCertificate: more.caCertificate ?? host.caCertificate(),
      address: '127.0.0.1',
    })

  it('goes by the way from here, and proves the server for the name that clients are told', async () => {
    assert.deepEqual([endpoint.host, endpoint.sslmode], [HOST, 'verify-full'])
    const { databaseBytes, connections } = await measure({})
    assert.ok(databaseBytes > 1_000_000)
    assert.equal(connections, 0)
  })

  it('proves addresses too', async () => {
    assert.ok((await measure({ host: '127.0.0.1' })).databaseBytes > 1_000_000)
  })

  it('sends no password to a server of another name or another authority', async () => {
    for (const name of ['other.example.invalid', '192.0.2.1'])
      await assert.rejects(measure({ host: name }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
    const other = await openTestHost(otherHome, { reach: { listen: '0.0.0.0', host: HOST } })
    const caCertificate = other.caCertificate()
    await other.stopAll({ keepDatabases: false })
    await assert.rejects(measure({ caCertificate }), /self-signed certificate|unable to (verify|get)|signature failure/)
  })
})
