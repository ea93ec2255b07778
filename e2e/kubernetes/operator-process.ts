/** An operator as a process on this machine, at a cluster that it reaches by a kubeconfig. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../../testkit/free-port.ts'

const PROGRAM = join(import.meta.dirname, '../../operator/main.ts')

export interface OperatorProcessOptions {
  readonly kubeconfig: string
  readonly namespace: string
  /** By which it holds its lease: the next one of the same name need not wait for it. */
  readonly identity: string
  readonly environment?: Readonly<Record<string, string>>
}

export class OperatorProcess {
  readonly #options: OperatorProcessOptions
  readonly #port: number
  #child: ChildProcess | undefined
  #output = ''

  private constructor(options: OperatorProcessOptions, port: number) {
    this.#options = options
    this.#port = port
  }

  static async create(options: OperatorProcessOptions): Promise<OperatorProcess> {
    return new OperatorProcess(options, await freePorts(1))
  }

  get metricsUrl(): string {
    return `http://127.0.0.1:${this.#port}/metrics`
  }

  /** Of the process that runs. @throws Error when none does */
  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined || !this.running) throw new Error('The operator does not run')
    return pid
  }

  /** What every process of it printed. */
  get output(): string {
    return this.#output
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** `more` is for this one process. */
  launch(more: Readonly<Record<string, string>> = {}): void {
    const { kubeconfig, namespace, identity, environment } = this.#options
    const child = spawn(process.execPath, [PROGRAM], {
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '/',
        KUBECONFIG: kubeconfig,
        SERVICE_OPERATOR_NAMESPACE: namespace,
        SERVICE_OPERATOR_IDENTITY: identity,
        SERVICE_METRICS_LISTEN: `127.0.0.1:${this.#port}`,
        ...environment,
        ...more,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    this.#child = child
  }

  /** Launches it and waits until it answers `/readyz`: it leads, and has looked at everything. */
  async start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    this.launch(more)
    const until = Date.now() + 120_000
    for (;;) {
      assert.ok(this.running, `The operator ended instead of starting:\n${this.#output.slice(-4000)}`)
      assert.ok(Date.now() < until, `The operator is not ready:\n${this.#output.slice(-4000)}`)
      const answer = await fetch(`http://127.0.0.1:${this.#port}/readyz`).catch(() => undefined)
      if (answer?.ok === true) return
      await sleep(25)
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
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
}
