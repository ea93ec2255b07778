/** A single box as its user runs it: processes in a temporary home, started, killed and stopped like the real thing. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processesOf } from '../runtime/postgres/postmaster-pid.ts'
import type { RunAs } from '../runtime/postgres/run-as.ts'
import { adoptServer, stopServer } from '../runtime/postgres/server-process.ts'
import { fastFolder } from '../testkit/fast-folder.ts'
import { freePorts } from '../testkit/free-port.ts'
import { programEnvironment } from '../testkit/program-environment.ts'
import { assertNoSecrets } from '../testkit/secrets-of-tests.ts'
import { ApiClient } from './api-client.ts'

const CHECKOUT = join(import.meta.dirname, '..')

/** What a finished command said. */
export interface Finished {
  readonly code: number | null
  readonly output: string
}

export interface BoxOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** Another program than box/up.ts that composes a box. */
  readonly program?: string
  /** Whether to open a channel to the program. */
  readonly ipc?: boolean
  /** Whose processes they are; as root, another account can be named. */
  readonly account?: RunAs
  /** A new empty folder to keep the home in; in memory, where there is room, when absent. */
  readonly folder?: string
}

/** The folder, ports and processes of one box; the home survives restarts until `remove`. */
export class BoxProcess {
  readonly home: string
  readonly baseUrl: string
  readonly environment: Record<string, string>
  readonly program: string
  readonly #ipc: boolean
  readonly #account: RunAs | undefined
  #child: ChildProcess | undefined
  #output = ''
  /** At all its starts. */
  #printed = ''

  private constructor(home: string, port: number, options: BoxOptions) {
    this.home = home
    this.baseUrl = `http://127.0.0.1:${port}`
    this.program = options.program ?? join(CHECKOUT, 'box', 'up.ts')
    this.#ipc = options.ipc ?? false
    this.#account = options.account
    this.environment = {
      ...programEnvironment(),
      HOME: process.env['HOME'] ?? '/',
      SERVICE_HOME: home,
      SERVICE_LISTEN: `127.0.0.1:${port}`,
      SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
      SERVICE_POSTGRES_PORTS: `${port + 2}-${port + 61}`,
      // Scenarios read connections all the time, as no user does.
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE: '0',
      SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE: '0',
      // Clients of scenarios keep their connections open.
      SERVICE_STOP_GRACE_SECONDS: '0',
      ...options.environment,
    }
  }

  /** A box that was not started yet. */
  static async create(options: BoxOptions = {}): Promise<BoxProcess> {
    const parent = options.folder ?? fastFolder('svc-e2e-')
    chmodSync(parent, 0o755) // as root, Postgres' account passes through
    return new BoxProcess(join(parent, 'svc'), await freePorts(62), options)
  }

  /** A started one. */
  static async start(options: BoxOptions = {}): Promise<BoxProcess> {
    const box = await BoxProcess.create(options)
    try {
      await box.start()
    } catch (error) {
      await box.remove() // nobody else has it in hand
      throw error
    }
    return box
  }

  /** The process that was launched last. */
  get child(): ChildProcess {
    assert.ok(this.#child, 'The box was not started')
    return this.#child
  }

  /** Where its metrics are. */
  get metricsUrl(): string {
    return `http://${this.environment['SERVICE_METRICS_LISTEN']}/metrics`
  }

  /** What the process printed since its last start. */
  get output(): string {
    return this.#output
  }

  /** Whether the process is there. */
  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Neither what it printed nor its log may hold a secret of a test, but for the tokens that it tells whoever starts it, once. */
  #assertNoSecrets(): void {
    const logFile = join(this.home, 'control-plane.log')
    assertNoSecrets({
      'what the box printed': this.#printed.split('\n').filter(line => !/svc_setup_|^ *Token +svc_pat_/.test(line)),
      'the log of the box': existsSync(logFile) ? readFileSync(logFile, 'utf8').split('\n') : [],
    })
  }

  /** Launches the program and returns at once. */
  launch(environment: Readonly<Record<string, string>> = {}): ChildProcess {
    this.#output = ''
    const child = spawn(process.execPath, [this.program], {
      cwd: CHECKOUT,
      env: { ...this.environment, ...environment },
      ...(this.#account && { uid: this.#account.uid, gid: this.#account.gid }),
      stdio: ['ignore', 'pipe', 'pipe', ...(this.#ipc ? (['ipc'] as const) : [])],
    })
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString()
        this.#printed += chunk.toString()
      })
    this.#child = child
    return child
  }

  /** Starts and waits until it serves and its first start is over. */
  async start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    this.launch(environment)
    await this.ready()
  }

  async ready(): Promise<void> {
    const until = Date.now() + 60_000
    for (;;) {
      assert.ok(this.running, `The box ended instead of starting:\n${this.#output}`)
      assert.ok(Date.now() < until, `The box is not ready after 60 s:\n${this.#output}`)
      if (/^Ready/m.test(this.#output)) return
      await sleep(25)
    }
  }

  /** Sends a signal and waits for the end. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Finished> {
    const child = this.#child
    assert.ok(child)
    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    if (!this.running) return { code: child.exitCode, output: this.#output }
    child.kill(signal)
    await closed
    return { code: child.exitCode, output: this.#output }
  }

  /** Waits for a launched program to end by itself. */
  async ended(deadlineMs = 60_000): Promise<Finished> {
    const child = this.#child
    assert.ok(child)
    const until = Date.now() + deadlineMs
    while (this.running) {
      assert.ok(Date.now() < until, `The process still runs after ${deadlineMs} ms:\n${this.#output}`)
      await sleep(25)
    }
    return { code: child.exitCode, output: this.#output }
  }

  /** Runs another program of the box, such as `down.ts`, to its end. */
  async run(program: string, environment: Readonly<Record<string, string>> = {}, input = ''): Promise<Finished> {
    const child = spawn(process.execPath, [join(CHECKOUT, 'box', program)], {
      cwd: CHECKOUT,
      env: { ...this.environment, ...environment },
      ...(this.#account && { uid: this.#account.uid, gid: this.#account.gid }),
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    const code = await new Promise<number | null>(resolve => child.once('close', resolve))
    return { code, output }
  }

  /** A client with the first token. */
  api(): ApiClient {
    const { base_url, token } = JSON.parse(readFileSync(join(this.home, 'credentials.json'), 'utf8')) as {
      base_url: string
      token: string
    }
    return new ApiClient(base_url, token)
  }

  /** Where Postgres' folders are. */
  get dataRoot(): string {
    const location = join(this.home, 'location')
    return existsSync(location) ? readFileSync(location, 'utf8').trim() : this.home
  }

  /** The data folders that exist: the control plane's and the environments'. */
  dataFolders(): { controlPlane: string; environments: string[] } {
    const environments = join(this.dataRoot, 'environments')
    return {
      controlPlane: join(this.dataRoot, 'control-plane', 'data'),
      environments: existsSync(environments)
        ? readdirSync(environments)
            .sort()
            .map(name => join(environments, name, 'data'))
            .filter(folder => existsSync(folder))
        : [],
    }
  }

  /** Every Postgres process that works in a folder of this box. */
  postgresProcesses(): number[] {
    const { controlPlane, environments } = this.dataFolders()
    return [controlPlane, ...environments].flatMap(processesOf)
  }

  /** Ends every Postgres of it as a power cut would. */
  async killPostgres(): Promise<void> {
    for (const pid of this.postgresProcesses()) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // Its postmaster took it along.
      }
    }
    const until = Date.now() + 10_000
    while (this.postgresProcesses().length > 0 && Date.now() < until) await sleep(20)
  }

  /**
   * Ends whatever of it still runs and removes its folders; for the end of a test, whatever state it left. Servers are told
   * to quit before they are killed: a killed one whose data is gone leaves its shared memory behind for ever.
   *
   * @throws AssertionError when a secret of a test stands in what it wrote; it is removed all the same
   */
  async remove(): Promise<void> {
    if (this.running) await this.stop('SIGKILL')
    const { controlPlane, environments } = this.dataFolders()
    const servers = [controlPlane, ...environments].map(adoptServer).filter(server => server !== undefined)
    await Promise.all(servers.map(server => stopServer(server, { fastMs: 0, immediateMs: 5000, killMs: 5000 })))
    await this.killPostgres()
    try {
      this.#assertNoSecrets()
    } finally {
      this.#removeFolders()
    }
  }

  #removeFolders(): void {
    if (this.dataRoot !== this.home) rmSync(this.dataRoot, { recursive: true, force: true })
    rmSync(join(this.home, '..'), { recursive: true, force: true })
  }
}
