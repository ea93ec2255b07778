import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** What the API server counts of its requests. Labels hold templates, never ids. */
export interface HttpMetrics {
  readonly duration: Histogram<'method' | 'route' | 'status'>
  readonly inFlight: Gauge
  readonly rateLimited: Counter<'policy'>
}

export const httpMetrics = (registry: Registry): HttpMetrics => ({
  duration: new Histogram({
    name: 'svc_http_request_duration_seconds',
    help: 'Time from the first byte of work to the end of the answer, by route template',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  }),
  inFlight: new Gauge({
    name: 'svc_http_requests_in_flight',
    help: 'Requests that were begun and not answered yet',
    registers: [registry],
  }),
  rateLimited: new Counter({
    name: 'svc_http_rate_limited_total',
    help: 'Requests refused by a limit, by policy',
    labelNames: ['policy'],
    registers: [registry],
  }),
})
