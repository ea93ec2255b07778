/** Environments that others can reach: what a client gets is enough to know the server, and nobody gets in without TLS. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import pg from 'pg'
import { FIRST_ENVIRONMENT, FIRST_ORGANIZATION, FIRST_PROJECT } from '../box/first-start.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import { BoxProcess } from './box-process.ts'

const FIRST = `/v1/organizations/${FIRST_ORGANIZATION}/projects/${FIRST_PROJECT}/environments/${FIRST_ENVIRONMENT}`

interface ConnectionBody {
  readonly connection_uri: string
  readonly ca_certificate: string | null
}

describe('a single box whose databases listen on every address', function () {
  this.timeout(120_000)
  let box: BoxProcess
  let connection: ConnectionBody
  before(async () => {
    const environment = { SERVICE_POSTGRES_LISTEN: '0.0.0.0', SERVICE_POSTGRES_HOST: 'localhost' }
    box = await BoxProcess.start({ environment })
    connection = await box.api().expect(200, 'GET', `${FIRST}/connection`)
  })
  after(() => box.remove())

  /** Signs in with a URI whose sslmode is replaced by what a client does with `ssl`. */
  const signIn = async (uri: string, ssl: pg.ClientConfig['ssl']): Promise<Record<string, unknown>[]> => {
    const url = new URL(uri)
    url.search = ''
    const client = new pg.Client({ connectionString: url.href, ssl, connectionTimeoutMillis: 5000 })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>('select ssl from pg_stat_ssl where pid = pg_backend_pid()'))
        .rows
    } finally {
      await client.end()
    }
  }

  it('hands out a URI that asks for full verification, and the certificate that it takes', async () => {
    const { connection_uri, ca_certificate } = connection
    assert.equal(new URL(connection_uri).searchParams.get('sslmode'), 'verify-full')
    assert.deepEqual(await signIn(connection_uri, { ca: ca_certificate!, rejectUnauthorized: true }), [{ ssl: true }])
  })

  it('is known by that certificate only, and only by the name in the URI', async () => {
    const { connection_uri, ca_certificate } = connection
    const untrusted = { code: /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/ }
    await assert.rejects(signIn(connection_uri, { rejectUnauthorized: true }), (error: NodeJS.ErrnoException) =>
      untrusted.code.test(error.code ?? ''),
    )
    // 127.0.0.2 is this machine as well, but not a name of the server.
    await assert.rejects(
      signIn(connection_uri.replace('@localhost:', '@127.0.0.2:'), { ca: ca_certificate!, rejectUnauthorized: true }),
      { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    )
  })

  it('refuses who comes without TLS, the right password or not', async () => {
    await assert.rejects(signIn(connection.connection_uri, false), { code: '28000' })
  })

  it('prints a line that connects as it is: the root certificate is in it, readable for everybody', async () => {
    const line = /psql "([^"]+)"/.exec(box.output)![1]!
    const file = new URL(line).searchParams.get('sslrootcert')!
    assert.equal(statSync(file).mode & 0o777, 0o644)
    const session = await openSqlDirect(line)
    assert.deepEqual(await session.rows('select ssl from pg_stat_ssl where pid = pg_backend_pid()'), [{ ssl: true }])
    await session.close()
    // The program that the line is for, where this machine has it.
    const { status, stdout, error } = spawnSync('psql', ['-XAtc', 'select 7', line], {
      encoding: 'utf8',
      timeout: 20_000,
    })
    if (error === undefined) assert.deepEqual([status, stdout], [0, '7\n'])
  })

  it('is known by the same certificate after a restart', async () => {
    await box.stop()
    await box.start()
    const again = await box.api().expect<ConnectionBody>(200, 'GET', `${FIRST}/connection`)
    assert.equal(again.ca_certificate, connection.ca_certificate)
    assert.deepEqual(await signIn(again.connection_uri, { ca: connection.ca_certificate! }), [{ ssl: true }])
  })
})
