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
  readonly health: EnvironmentController['health']
  /** Ends every loop and waits for what runs; databases are left as they are. */
  stop(): Promise<void>
}

export const startOperator = (config: OperatorConfig, ports: OperatorPorts): Operator => {
  const context = operatorContext(config, ports)
  const environments = startEnvironmentController(context)
  const stopSweep = startDeletionRecordSweep({
    ...context,
    namespace: config.namespace,
    keepMs: config.keepDeletionRecordsMs,
  })
  return {
    ready: () => environments.ready,
    health: environments.health,
    stop: async () => {
      await Promise.all([environments.stop(), stopSweep()])
    },
  }
}
