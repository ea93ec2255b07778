import { Counter, type Registry } from 'prom-client'

const made = new WeakMap<Registry, Counter<'kind'>>()

/** Counts what somebody changed and was put right, by the kind of what it was. One counter a registry. */
export const driftMetrics = (registry: Registry): { readonly corrected: (kind: string) => void } => {
  const counter =
    made.get(registry) ??
    new Counter({
      name: 'drift_corrections_total',
      help: 'What somebody changed and was put right, by kind',
      labelNames: ['kind'],
      registers: [registry],
    })
  made.set(registry, counter)
  return { corrected: kind => counter.inc({ kind }) }
}
