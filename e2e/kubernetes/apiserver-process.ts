/** An API server as a process on this machine, whose resources live in a cluster that it reaches by a kubeconfig. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../../testkit/free-port.ts'
import { succeeded } from '../../testkit/kubernetes/kubectl.ts'

const CHECKOUT = join(import.meta.dirname, '../..')

export interface ApiServerProcessOptions {
  readonly kubeconfig: string
  /** Of the operator, where it leaves its records. */
  readonly namespace: string
  /** The control-plane database, as the role that serves. */
  readonly databaseUrl: string
  readonly masterKey: string
}

export class ApiServerProcess {
  readonly #options: ApiServerProcessOptions
  readonly #port: number
  #child: ChildProcess | undefined
  #output = ''

  private constructor(options: ApiServerProcessOptions, port: number) {
    this.#options = options
    this.#port = port
  }

  static async create(options: ApiServerProcessOptions): Promise<ApiServerProcess> {
    return new ApiServerProcess(options, await freePorts(2))
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** What every process of it printed. */
  get output(): string {
    return this.#output
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Launches it and waits until it answers `/readyz`. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [join(CHECKOUT, 'apiserver/main.ts')], {
      env: this.#environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    this.#child = child
    const until = Date.now() + 120_000
    while ((await fetch(`${this.baseUrl}/readyz`).catch(() => undefined))?.ok !== true) {
      assert.ok(this.running, `The API server ended instead of starting:\n${this.#output.slice(-4000)}`)
      assert.ok(Date.now() < until, `The API server is not ready:\n${this.#output.slice(-4000)}`)
      await sleep(50)
    }
  }

  /** Makes a user who may make organizations, as an administrator does beside the server. @returns a token */
  async newUser(email: string): Promise<string> {
    const printed = await succeeded(process.execPath, ['apiserver/new-user.ts', '--operator', email], {
      cwd: CHECKOUT,
      env: this.#environment(),
    })
    return printed.trim()
  }

  /** Sends a signal and waits for the end. @returns the exit code */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    if (child === undefined || !this.running) return child?.exitCode ?? null
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    return child.exitCode
  }

  #environment(): Record<string, string> {
    const { kubeconfig, namespace, databaseUrl, masterKey } = this.#options
    return {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '/',
      KUBECONFIG: kubeconfig,
      SERVICE_STORE: 'kubernetes',
      SERVICE_DATABASE_URL: databaseUrl,
      SERVICE_KMS_MASTER_KEY: masterKey,
      SERVICE_OPERATOR_NAMESPACE: namespace,
      SERVICE_LISTEN: `127.0.0.1:${this.#port}`,
      SERVICE_METRICS_LISTEN: `127.0.0.1:${this.#port + 1}`,
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE: '0',
      SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE: '0',
      SERVICE_STOP_GRACE_SECONDS: '0',
    }
  }
}
