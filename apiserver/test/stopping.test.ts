import assert from 'node:assert/strict'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { send } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'

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
    const api = await startTestApiServer({ operator: false })
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

  it('is quick when nothing is in flight, kept connections or not', async () => {
    const api = await startTestApiServer({
      operator: false,
      config: { stop: { graceMs: 600_000, drainMs: 600_000 } },
    })
    await api.nobody.call('getHealth')
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
