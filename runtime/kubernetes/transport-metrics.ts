/** What calls to the API server tell, under the names that client-go's users know. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export interface TransportMetrics {
  /** An attempt ended; `code` is the HTTP status, or `<error>` when there was none. */
  requested(method: string, resource: string, code: string, seconds: number): void
  /** A call is made again. */
  retried(method: string, resource: string): void
  watching(resource: string, change: 1 | -1): void
  /** A watch's stream held something that is no JSON line. */
  badLine(resource: string): void
}

export const silentTransportMetrics: TransportMetrics = {
  requested: () => undefined,
  retried: () => undefined,
  watching: () => undefined,
  badLine: () => undefined,
}

/** Several clients share a registry, which takes each name once. */
const registered = new WeakMap<Registry, TransportMetrics>()

const register = (registry: Registry): TransportMetrics => {
  const registers = [registry]
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the Kubernetes API server, by answer',
    labelNames: ['code', 'method', 'resource'],
    registers,
  })
  const durations = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Time to the end of an answer; of a watch, to its beginning',
    labelNames: ['method', 'resource'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const retries = new Counter({
    name: 'rest_client_retries_total',
    help: 'Requests that were made again',
    labelNames: ['method', 'resource'],
    registers,
  })
  const watches = new Gauge({
    name: 'rest_client_watches',
    help: 'Watches open',
    labelNames: ['resource'],
    registers,
  })
  const badLines = new Counter({
    name: 'rest_client_watch_parse_errors_total',
    help: 'Watches dropped because a line was no JSON',
    labelNames: ['resource'],
    registers,
  })
  return {
    requested: (method, resource, code, seconds) => {
      requests.inc({ code, method, resource })
      durations.observe({ method, resource }, seconds)
    },
    retried: (method, resource) => retries.inc({ method, resource }),
    watching: (resource, change) => watches.inc({ resource }, change),
    badLine: resource => badLines.inc({ resource }),
  }
}

/** The metrics of a registry; every client that is given it counts in the same. */
export const transportMetrics = (registry: Registry): TransportMetrics => {
  const metrics = registered.get(registry) ?? register(registry)
  registered.set(registry, metrics)
  return metrics
}
