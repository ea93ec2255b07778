import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Intents that wait, and the age of the oldest. */
export interface PendingFigures {
  readonly pending: number
  readonly oldestSeconds: number
}

/** What dispatch and projection tell about themselves. */
export interface ProjectionMetrics {
  /** Where to ask for what waits, at each scrape; undefined: nobody asks this process. */
  pendingFrom(source: (() => Promise<PendingFigures>) | undefined): void
  /** From the news of a change to its rows. */
  folded(seconds: number): void
  holdsLease(holds: boolean): void
  externalChange(kind: 'created' | 'changed' | 'deleted'): void
  /** Environments that belong to no project of ours. */
  leftAlone(count: number): void
}

const byRegistry = new WeakMap<Registry, ProjectionMetrics>()

/** The metrics in a registry, registered at the first call: several services of one process may share it. */
export const projectionMetrics = (registry: Registry): ProjectionMetrics => {
  const metrics = byRegistry.get(registry) ?? register(registry)
  byRegistry.set(registry, metrics)
  return metrics
}

const register = (registry: Registry): ProjectionMetrics => {
  const registers = [registry]
  let source: (() => Promise<PendingFigures>) | undefined
  const oldest = new Gauge({
    name: 'svc_intents_oldest_age_seconds',
    help: 'Age of the oldest intent that waits',
    registers,
  })
  const pending = new Gauge({
    name: 'svc_intents_pending',
    help: 'Intents that wait to be carried to the resource store',
    registers,
    collect: async () => {
      // A scrape while the database is away shows the last figures.
      const figures = await source?.().catch(() => undefined)
      if (figures === undefined) return
      pending.set(figures.pending)
      oldest.set(figures.oldestSeconds)
    },
  })
  const lease = new Gauge({ name: 'svc_lease_holder', help: 'Whether this process dispatches and projects', registers })
  const external = new Counter({
    name: 'svc_external_changes_total',
    help: 'Changes that nobody asked the API for',
    labelNames: ['kind'],
    registers,
  })
  const alone = new Gauge({
    name: 'svc_environments_left_alone',
    help: 'Environments in the store that belong to no project of ours',
    registers,
  })
  const lag = new Histogram({
    name: 'svc_fold_lag_seconds',
    help: 'From the news of a change of a resource to its rows',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  })
  return {
    pendingFrom: next => void (source = next),
    folded: seconds => lag.observe(seconds),
    holdsLease: holds => lease.set(holds ? 1 : 0),
    externalChange: kind => external.inc({ kind }),
    leftAlone: count => alone.set(count),
  }
}
