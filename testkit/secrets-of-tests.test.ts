import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { newId } from '../lib/model/time-ordered-id.ts'
import { ApiClient, send } from './api-client.ts'
import { judgeMetrics, judgeRows, processPlace, startApiProcess } from './api-process.ts'
import { controlPlaneDatabase } from './control-plane-database.ts'
import { startTestCluster } from './postgres.ts'
import { closeRawConnections, sendBytes, sendRaw } from './raw-http.ts'
import { assertNoSecrets, noteSecretSettings, noteSecrets } from './secrets-of-tests.ts'

const newSecret = (): string => `canary-${randomBytes(12).toString('hex')}`
const noted = (): string => {
  const secret = newSecret()
  noteSecrets(secret)
  return secret
}
const leaksFrom = (sink: RegExp) => (error: unknown) => {
  assert.ok(error instanceof assert.AssertionError, String(error))
  assert.match(error.message, /1 secrets stand in /)
  assert.match(error.message, sink)
  return true
}

describe('secrets of tests, planted in each sink', () => {
  /** Answers with a problem that quotes what it was sent. */
  let parrot: Server
  let url: string
  before(async () => {
    parrot = createServer((request, response) => {
      let body = ''
      request.on('data', (piece: Buffer) => (body += piece.toString()))
      request.once('end', () => {
        const said = `${request.headers.authorization ?? ''} ${String(request.headers['idempotency-key'])} ${body}`
        response.writeHead(400, { 'Content-Type': 'application/json', Connection: 'close' })
        response.end(JSON.stringify({ detail: said }))
      })
    }).listen(0, '127.0.0.1')
    await once(parrot, 'listening')
    url = `http://127.0.0.1:${(parrot.address() as AddressInfo).port}`
  })
  after(() => {
    closeRawConnections()
    parrot.closeAllConnections()
    parrot.close()
  })

  const sent: Readonly<Record<string, (secret: string) => { headers: Record<string, string>; body: string }>> = {
    'a bearer': secret => ({ headers: { Authorization: `Bearer ${secret}` }, body: '{}' }),
    'an Idempotency-Key': secret => ({ headers: { 'Idempotency-Key': secret }, body: '{}' }),
    'a field of JSON': secret => ({ headers: {}, body: JSON.stringify({ a: [{ new_password: secret }] }) }),
    'a field of a form': secret => ({ headers: {}, body: new URLSearchParams({ device_code: secret }).toString() }),
  }
  for (const [what, write] of Object.entries(sent)) {
    it(`are found in an answer that quotes ${what}, however it was sent`, async () => {
      const leaks = leaksFrom(/what POST \/v1\/x\S* (?:HTTP\/1.1 )?answered \(400\)/)
      const [first, second, third] = [write(newSecret()), write(newSecret()), write(newSecret())]
      await assert.rejects(send(`${url}/v1/x`, { method: 'POST', ...first }), leaks)
      const raw = { method: 'POST', target: '/v1/x', headers: Object.entries(second.headers) }
      await assert.rejects(sendRaw(url, { ...raw, body: Buffer.from(second.body) }), leaks)
      const lines = Object.entries(third.headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const head = `POST /v1/x HTTP/1.1\r\nHost: a\r\n${lines.join('')}Content-Length: ${third.body.length}\r\n\r\n`
      await assert.rejects(sendBytes(url, head + third.body), leaks)
    })
  }

  it('are found in the answer to a call of a route', async () => {
    const call = new ApiClient(url).call('signIn', { body: { email: 'ada@example.com', password: newSecret() } })
    await assert.rejects(call, leaksFrom(/answered \(400\)/))
  })

  it('are found in metrics', async () => {
    const secret = noted()
    const metrics = createServer((_request, response) => response.end(`svc_x{a="${secret}"} 1\n`)).listen(
      0,
      '127.0.0.1',
    )
    await once(metrics, 'listening')
    const { port } = metrics.address() as AddressInfo
    await assert.rejects(judgeMetrics(`http://127.0.0.1:${port}/metrics`), leaksFrom(/the metrics/))
    metrics.closeAllConnections()
    metrics.close()
  })

  it('are found in the rows of a database that processes serve', async () => {
    const plane = await controlPlaneDatabase()
    await judgeRows(plane)
    const values = [newId('usr'), 'ada@example.com', noted()]
    await plane.database.rows('insert into users (user_id, email, name) values ($1, $2, $3)', values)
    await assert.rejects(judgeRows(plane), leaksFrom(/the database/))
    await plane.database.stop()
  })

  it('are found in the lowest level of a process’ log', async () => {
    const process = await startApiProcess(await processPlace())
    const answer = await fetch(`${process.url}/healthz`, { headers: { 'X-Request-Id': noted() } })
    assert.equal(answer.status, 200)
    await answer.arrayBuffer()
    await assert.rejects(process.stop(), leaksFrom(/what the process wrote/))
  }).timeout(60_000)

  it('are found in the log of a database server, as the parameter of a statement that failed', async () => {
    const cluster = await startTestCluster()
    const client = new pg.Client({ connectionString: cluster.url('postgres') })
    await client.connect()
    await assert.rejects(client.query('select $1::text::int', [noted()]))
    await client.end()
    await assert.rejects(cluster.stop(), leaksFrom(/the log of the database server/))
  }).timeout(60_000)

  it('are found that came as a setting: a token, several keys, the hash of a password', () => {
    const [token, hash, one, other] = [
      newSecret(),
      `$argon2id$v=19$m=1,t=2,p=1$${newSecret()}`,
      newSecret(),
      newSecret(),
    ]
    noteSecretSettings({
      SERVICE_MAIL_WEBHOOK_TOKEN: token,
      SERVICE_ADMIN_PASSWORD_HASH: hash,
      SERVICE_KMS_PREVIOUS_MASTER_KEYS: `${one},${other}`,
      SERVICE_CONSOLE_URL: 'https://console.example.com',
    })
    for (const secret of [token, hash, one, other])
      assert.throws(() => assertNoSecrets({ 'a line': [`x ${secret} y`] }), leaksFrom(/a line/))
    assertNoSecrets({ 'a line': ['https://console.example.com'] })
  })
})
