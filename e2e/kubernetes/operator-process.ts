/** An operator as a process on this machine, at a cluster that it reaches by a kubeconfig. Ready: it leads, and has looked at everything. */
import { freePorts } from '../../testkit/free-port.ts'
import { StartedProgram } from './started-program.ts'

export interface OperatorProcessOptions {
  readonly kubeconfig: string
  readonly namespace: string
  /** By which it holds its lease: the next one of the same name need not wait for it. */
  readonly identity: string
  readonly environment?: Readonly<Record<string, string>>
}

export class OperatorProcess extends StartedProgram {
  readonly metricsUrl: string

  private constructor({ kubeconfig, namespace, identity, environment }: OperatorProcessOptions, port: number) {
    super({
      title: 'The operator',
      file: 'operator/main.ts',
      readinessUrl: `http://127.0.0.1:${port}/readyz`,
      environment: {
        KUBECONFIG: kubeconfig,
        SERVICE_OPERATOR_NAMESPACE: namespace,
        SERVICE_OPERATOR_IDENTITY: identity,
        SERVICE_METRICS_LISTEN: `127.0.0.1:${port}`,
        ...environment,
      },
    })
    this.metricsUrl = `http://127.0.0.1:${port}/metrics`
  }

  static async create(options: OperatorProcessOptions): Promise<OperatorProcess> {
    return new OperatorProcess(options, await freePorts(1))
  }
}
