import assert from 'node:assert/strict'
import { Counter, Registry } from 'prom-client'
import { collectProcessMetrics, startMetricsListener } from './metrics-listener.ts'

describe('the metrics listener', () => {
  it('serves the registry at /metrics and nothing else', async () => {
    const registry = new Registry()
    collectProcessMetrics(registry)
    new Counter({ name: 'svc_counted_total', help: 'Counted', registers: [registry] }).inc(3)
    const listener = await startMetricsListener({ host: '127.0.0.1', port: 0, registry })
    try {
      const answer = await fetch(listener.url)
      assert.equal(answer.status, 200)
      const text = await answer.text()
      assert.match(text, /^svc_counted_total 3$/m)
      assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
      assert.equal((await fetch(new URL('/', listener.url))).status, 404)
      assert.equal((await fetch(listener.url, { method: 'POST' })).status, 405)
    } finally {
      await listener.stop()
    }
  })
})
