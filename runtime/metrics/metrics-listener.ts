/** Metrics, and what probes ask, on a listener of their own, so that nobody who reaches the API reaches them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { collectDefaultMetrics, type Registry } from 'prom-client'

export interface MetricsListener {
  readonly url: string
  stop(): Promise<void>
}

export interface MetricsListenerOptions {
  readonly host: string
  readonly port: number
  readonly registry: Registry
  /** By path: answers why not, or undefined when all is well. */
  readonly probes?: Readonly<Record<string, () => string | undefined>>
}

/** CPU, memory, event loop delay, garbage collection: once a process, whatever it composes. */
export const collectProcessMetrics = (registry: Registry): void => {
  collectDefaultMetrics({ register: registry })
}

/** Serves a registry at `/metrics`. @throws the system's error when it cannot listen */
export const startMetricsListener = async ({
  host,
  port,
  registry,
  probes = {},
}: MetricsListenerOptions): Promise<MetricsListener> => {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? ''
    const probe = Object.hasOwn(probes, path) ? probes[path] : undefined
    if (probe !== undefined) {
      const why = probe()
      response.writeHead(why === undefined ? 200 : 503, { 'Content-Type': 'text/plain' }).end(`${why ?? 'ok'}\n`)
      return
    }
    if (path !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(path === '/metrics' ? 405 : 404, path === '/metrics' ? { Allow: 'GET, HEAD' } : {}).end()
      return
    }
    registry.metrics().then(
      text => response.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(text),
      () => response.writeHead(500).end(),
    )
  })
  server.headersTimeout = 10_000
  server.requestTimeout = 10_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, port: bound, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/metrics`,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
