import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** What the embedded store counts; every member carries the client's name as `client`. */
export interface StoreMetrics {
  requested(operation: string, outcome: string, seconds: number): void
  delivered(resource: string): void
  watching(resource: string, change: 1 | -1): void
  reconnected(): void
  compacted(changes: number): void
  failed(loop: 'listener' | 'watch' | 'compaction'): void
}

export const silentMetrics: StoreMetrics = {
  requested: () => undefined,
  delivered: () => undefined,
  watching: () => undefined,
  reconnected: () => undefined,
  compacted: () => undefined,
  failed: () => undefined,
}

interface Registered {
  readonly requests: Histogram<'client' | 'operation' | 'outcome'>
  readonly events: Counter<'client' | 'resource'>
  readonly watches: Gauge<'client' | 'resource'>
  readonly reconnects: Counter<'client'>
  readonly compacted: Counter<'client'>
  readonly errors: Counter<'client' | 'loop'>
}

/** Several clients share a registry, which takes each name once. */
const registered = new WeakMap<Registry, Registered>()

const register = (registry: Registry): Registered => {
  const registers = [registry]
  const metrics: Registered = {
    requests: new Histogram({
      name: 'svc_store_request_duration_seconds',
      help: 'Time that requests to the resource store took',
      labelNames: ['client', 'operation', 'outcome'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 10],
      registers,
    }),
    events: new Counter({
      name: 'svc_store_watch_events_total',
      help: 'Changes delivered to watches',
      labelNames: ['client', 'resource'],
      registers,
    }),
    watches: new Gauge({
      name: 'svc_store_watches',
      help: 'Watches open',
      labelNames: ['client', 'resource'],
      registers,
    }),
    reconnects: new Counter({
      name: 'svc_store_listener_reconnects_total',
      help: 'Times the connection that hears of changes was opened again',
      labelNames: ['client'],
      registers,
    }),
    compacted: new Counter({
      name: 'svc_store_compacted_changes_total',
      help: 'Changes dropped from the log',
      labelNames: ['client'],
      registers,
    }),
    errors: new Counter({
      name: 'svc_store_loop_errors_total',
      help: 'Errors that a background loop of the store survived',
      labelNames: ['client', 'loop'],
      registers,
    }),
  }
  registered.set(registry, metrics)
  return metrics
}

/** Metrics of one client in a registry. */
export const storeMetrics = (registry: Registry, client: string): StoreMetrics => {
  const metrics = registered.get(registry) ?? register(registry)
  return {
    requested: (operation, outcome, seconds) => metrics.requests.observe({ client, operation, outcome }, seconds),
    delivered: resource => metrics.events.inc({ client, resource }),
    watching: (resource, change) => metrics.watches.inc({ client, resource }, change),
    reconnected: () => metrics.reconnects.inc({ client }),
    compacted: changes => metrics.compacted.inc({ client }, changes),
    failed: loop => metrics.errors.inc({ client, loop }),
  }
}
