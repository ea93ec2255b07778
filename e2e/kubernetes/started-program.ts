/** One of our programs as a process on this machine, started again and again with the same settings. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { programEnvironment } from '../../testkit/program-environment.ts'

/** The root of the sources. */
export const CHECKOUT = join(import.meta.dirname, '../..')

export interface ProgramOptions {
  /** What it is called in failures. */
  readonly title: string
  /** Its file, from the root of the sources. */
  readonly file: string
  readonly environment: Readonly<Record<string, string>>
  /** Where `/readyz` is. */
  readonly readinessUrl: string
}

export class StartedProgram {
  readonly #options: ProgramOptions
  #child: ChildProcess | undefined
  #output = ''

  constructor(options: ProgramOptions) {
    this.#options = options
  }

  /** What every process of it printed. */
  get output(): string {
    return this.#output
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Of its latest process. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** `more` is for this one process. */
  launch(more: Readonly<Record<string, string>> = {}): void {
    const { file, environment } = this.#options
    const child = spawn(process.execPath, [join(CHECKOUT, file)], {
      env: { ...programEnvironment(), ...environment, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    this.#child = child
  }

  /** Launches it and waits until it answers `/readyz`. */
  async start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    this.launch(more)
    const { title, readinessUrl } = this.#options
    const until = Date.now() + 120_000
    for (;;) {
      assert.ok(this.running, `${title} ended instead of starting:\n${this.#output.slice(-4000)}`)
      assert.ok(Date.now() < until, `${title} is not ready:\n${this.#output.slice(-4000)}`)
      const answer = await fetch(readinessUrl).catch(() => undefined)
      if (answer?.ok === true) return
      await sleep(25)
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Sends a signal and waits for the end. @returns the exit code */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const ended = this.ended()
    this.signal(signal)
    return ended
  }

  /** Waits for the end, for one that was told to stop already: told twice, it stops where it is. @returns the exit code */
  async ended(): Promise<number | null> {
    const child = this.#child
    if (child === undefined || !this.running) return child?.exitCode ?? null
    await once(child, 'exit')
    return child.exitCode
  }
}
