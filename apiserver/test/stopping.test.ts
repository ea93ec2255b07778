import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { send } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'

/** Longer than any test: whoever waits for it fails. */
const LONG = { graceMs: 600_000, drainMs: 600_000 }

describe('stopping the server', () => {
  /** A request whose body is held back until `finish`. */
  const slowRequest = (url: string, token: string) => {
    const body = JSON.stringify({ name: 'slow' })
    const outgoing = request(`${url}/v1/account/tokens`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'Idempotency-Key': 'slow',
      },
    })
    const status = new Promise<number>((resolve, reject) => {
      outgoing.on('error', reject)
      outgoing.on('response', response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
    })
    outgoing.write(body.slice(0, 5))
    return { status, finish: () => outgoing.end(body.slice(5)) }
  }

  const inFlight = async (api: TestApiServer): Promise<number> => {
    const metric = await api.registry.getSingleMetric('svc_http_requests_in_flight')?.get()
    return metric?.values[0]?.value ?? 0
  }

  it('answers what is in flight, says that it is stopping, then refuses connections', async () => {
    const api = await startTestApiServer({ operator: false, config: { stop: LONG } })
    const caller = await api.makeCaller('slow')
    const slow = slowRequest(api.url, caller.token)
    while ((await inFlight(api)) === 0) await sleep(5)
    const stopped = api.stop()
    const ready = await api.nobody.call('getReadiness')
    assert.deepEqual([ready.status, ready.body.code], [503, 'shutting_down'])
    assert.equal(ready.headers.get('connection'), 'close')
    slow.finish()
    assert.equal(await slow.status, 201)
    await stopped
    await assert.rejects(send(`${api.url}/healthz`, {}))
  })

  /** One request of a proxy over its kept connections; whether it was told to open another next time. */
  const through = (agent: Agent, url: string) =>
    new Promise<{ readonly status: number; readonly closes: boolean; readonly reused: boolean }>((resolve, reject) => {
      const outgoing = request(url, { agent }, response => {
        response.resume().on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            closes: response.headers.connection === 'close',
            reused: outgoing.reusedSocket,
          }),
        )
      })
      outgoing.on('error', reject)
      outgoing.end()
    })

  it('tells each kept connection to close at its next answer, and resets none', async () => {
    const api = await startTestApiServer({ operator: false, config: { stop: LONG } })
    const proxy = new Agent({ keepAlive: true, maxSockets: 8 })
    const eight = (path: string) => Promise.all(Array.from({ length: 8 }, () => through(proxy, `${api.url}${path}`)))
    await eight('/healthz')
    const stopped = api.stop()
    const [first, ...rest] = await eight('/readyz')
    assert.deepEqual(first, { status: 503, closes: true, reused: true })
    for (const each of rest) assert.deepEqual(each, first)
    await stopped // nobody waited for the ten minutes of grace
    proxy.destroy()
  })

  it('waits for connections that nobody uses no longer than the grace', async () => {
    const api = await startTestApiServer({ operator: false, config: { stop: { graceMs: 50, drainMs: 600_000 } } })
    const idle = new Agent({ keepAlive: true })
    await through(idle, `${api.url}/healthz`)
    await api.stop()
    await assert.rejects(through(idle, `${api.url}/healthz`))
    idle.destroy()
  })

  it('is immediate when no connection is open', async () => {
    const api = await startTestApiServer({ operator: false, config: { stop: LONG } })
    await through(new Agent({ keepAlive: false }), `${api.url}/healthz`)
    await api.stop()
  })

  it('does not wait for ever for a request that never ends', async () => {
    const api = await startTestApiServer({ operator: false, config: { stop: { graceMs: 20, drainMs: 50 } } })
    const caller = await api.makeCaller('stuck')
    const stuck = slowRequest(api.url, caller.token)
    const failed = assert.rejects(stuck.status)
    while ((await inFlight(api)) === 0) await sleep(5)
    await api.stop()
    await failed
  })
})
