/** An API server as a process on this machine, whose resources live in a cluster that it reaches by a kubeconfig. */
import { freePorts } from '../../testkit/free-port.ts'
import { succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { programEnvironment } from '../../testkit/program-environment.ts'
import { CHECKOUT, StartedProgram } from './started-program.ts'

export interface ApiServerProcessOptions {
  readonly kubeconfig: string
  /** Of the operator, where it leaves its records. */
  readonly namespace: string
  /** The control-plane database, as the role that serves. */
  readonly databaseUrl: string
  readonly masterKey: string
}

export class ApiServerProcess extends StartedProgram {
  readonly baseUrl: string
  readonly metricsUrl: string
  readonly #databaseUrl: string

  private constructor({ kubeconfig, namespace, databaseUrl, masterKey }: ApiServerProcessOptions, port: number) {
    const baseUrl = `http://127.0.0.1:${port}`
    super({
      title: 'The API server',
      file: 'apiserver/main.ts',
      readinessUrl: `${baseUrl}/readyz`,
      environment: {
        KUBECONFIG: kubeconfig,
        SERVICE_AUTH_MODE: 'builtin',
        SERVICE_STORE: 'kubernetes',
        SERVICE_DATABASE_URL: databaseUrl,
        SERVICE_KMS_MASTER_KEY: masterKey,
        SERVICE_OPERATOR_NAMESPACE: namespace,
        SERVICE_LISTEN: `127.0.0.1:${port}`,
        SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
        SERVICE_RATE_LIMIT_PER_MINUTE: '0',
        SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE: '0',
        SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE: '0',
        SERVICE_STOP_GRACE_SECONDS: '0',
      },
    })
    this.baseUrl = baseUrl
    this.metricsUrl = `http://127.0.0.1:${port + 1}/metrics`
    this.#databaseUrl = databaseUrl
  }

  static async create(options: ApiServerProcessOptions): Promise<ApiServerProcess> {
    return new ApiServerProcess(options, await freePorts(2))
  }

  /** Makes a user who may make organizations, as an administrator does beside the server. @returns a token */
  async newUser(email: string): Promise<string> {
    const printed = await succeeded(process.execPath, ['apiserver/new-user.ts', '--operator', email], {
      cwd: CHECKOUT,
      env: { ...programEnvironment(), SERVICE_DATABASE_URL: this.#databaseUrl },
    })
    return printed.trim()
  }
}
