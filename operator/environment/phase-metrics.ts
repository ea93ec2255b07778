import { Gauge, Histogram, type Registry } from 'prom-client'
import { PHASES, type Phase } from '../../lib/model/environment.ts'
import { keyText, type ResourceKey } from '../../lib/model/resource.ts'

/** How many environments are in which phase, and how long they were in the one before. */
export interface PhaseGauge {
  stands(key: ResourceKey, phase: Phase): void
  moved(from: Phase, to: Phase, tookMs: number): void
  forget(key: ResourceKey): void
}

export const phaseMetrics = (registry: Registry): PhaseGauge => {
  const phases = new Map<string, Phase>()
  new Gauge({
    name: 'environments',
    help: 'Environments by phase',
    labelNames: ['phase'],
    registers: [registry],
    collect() {
      for (const phase of PHASES) this.set({ phase }, 0)
      for (const phase of phases.values()) this.inc({ phase })
    },
  })
  const durations = new Histogram({
    name: 'phase_duration_seconds',
    help: 'How long environments were in a phase before they moved on',
    labelNames: ['from', 'to'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600],
    registers: [registry],
  })
  return {
    stands: (key, phase) => phases.set(keyText(key), phase),
    moved: (from, to, tookMs) => durations.observe({ from, to }, Math.max(0, tookMs) / 1000),
    forget: key => phases.delete(keyText(key)),
  }
}
