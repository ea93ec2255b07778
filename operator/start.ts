/** The operator, composed: configuration and ports in, a running service out. It knows resources only. */
import type { OperatorConfig } from './config/config.ts'
import { type OperatorPorts, operatorContext } from './context.ts'
import { startDeletionRecordSweep } from './deletion-records/sweep.ts'
import { type EnvironmentController, startEnvironmentController } from './environment/controller.ts'

export interface Operator {
  /**
   * Resolves once every environment that was there at the start has been judged: those that do not answer are
   * `updating` by then. Rejects when the operator is stopped before.
   */
  ready(): Promise<void>
  /** Resolves once the caches are full, elected or not. */
  readonly synced: Promise<void>
  readonly health: EnvironmentController['health']
  /** The environments, as they were seen last. */
  readonly environments: EnvironmentController['cache']
  /** Ends every loop and waits for what runs; databases are left as they are. */
  stop(): Promise<void>
}

export const startOperator = (config: OperatorConfig, ports: OperatorPorts): Operator => {
  const context = operatorContext(config, ports)
  const environments = startEnvironmentController(context)
  const sweeping = { ...context, namespace: config.namespace, keepMs: config.keepDeletionRecordsMs }
  let stopped = false
  let stopSweep: (() => Promise<void>) | undefined
  const startSweep = (): void => {
    if (!stopped) stopSweep = startDeletionRecordSweep(sweeping)
  }
  if (ports.elected === undefined) startSweep()
  // Who is never elected never sweeps.
  else void ports.elected.then(startSweep, () => undefined)
  return {
    ready: () => environments.ready,
    synced: environments.synced,
    health: environments.health,
    environments: environments.cache,
    stop: async () => {
      stopped = true
      await Promise.all([environments.stop(), stopSweep?.()])
    },
  }
}
