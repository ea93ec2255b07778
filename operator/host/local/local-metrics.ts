import { Counter, Gauge, Registry } from 'prom-client'
import type { InstanceState } from '../host.ts'

/** What the local host counts. */
export interface LocalMetrics {
  readonly starts: Counter<'result'>
  readonly crashes: Counter
  readonly failedProbes: Counter
  /** Errors of background work: sweeps, log rotation, stops. */
  readonly errors: Counter<'work'>
}

/** Registers the local host's metrics; `states` and `freeBytes` are asked when somebody scrapes. */
export const localMetrics = (
  registry: Registry = new Registry(),
  states: () => ReadonlyMap<InstanceState, number>,
  lowDisks: () => number,
): LocalMetrics => {
  const registers = [registry]
  new Gauge({
    name: 'svc_local_instances',
    help: 'Postgres instances of this host, by state',
    labelNames: ['state'],
    registers,
    collect() {
      this.reset()
      for (const [state, count] of states()) this.set({ state }, count)
    },
  })
  new Gauge({
    name: 'svc_local_instances_disk_low',
    help: 'Postgres instances whose disk is nearly full',
    registers,
    collect() {
      this.set(lowDisks())
    },
  })
  return {
    starts: new Counter({
      name: 'svc_local_starts_total',
      help: 'Starts of Postgres, by result: ready, or the reason of the failure',
      labelNames: ['result'],
      registers,
    }),
    crashes: new Counter({
      name: 'svc_local_crashes_total',
      help: 'Postgres processes that ended by themselves while they ran',
      registers,
    }),
    failedProbes: new Counter({ name: 'svc_local_failed_probes_total', help: 'Probes without an answer', registers }),
    errors: new Counter({
      name: 'svc_local_background_errors_total',
      help: 'Errors of background work of the local host',
      labelNames: ['work'],
      registers,
    }),
  }
}
