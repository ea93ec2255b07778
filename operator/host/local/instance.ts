/**
 * One environment's Postgres on this machine. Told what is wanted, it writes that down and goes there: one step at a time, each
 * of which may be repeated. It notices by itself when its server dies, fails to start or stops answering, and brings a wanted
 * one back with growing pauses. It never signs in to the tenant's database and never removes data.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { dropOldLogs } from '../../../runtime/postgres/log-files.ts'
import { orphansGone } from '../../../runtime/postgres/orphans.ts'
import { processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import {
  adoptServer,
  reloadServer,
  type ServerProcess,
  type SocketAddress,
  stopServer,
} from '../../../runtime/postgres/server-process.ts'
import {
  ConditionError,
  type InstanceFailure,
  type InstanceSpec,
  type InstanceState,
  type ObservedInstance,
} from '../host.ts'
import { Turns } from '../turns.ts'
import { explainEnd } from './explain-end.ts'
import { conditionError, failureOf } from './failure-reason.ts'
import { takeOverConnectionLimit, takeOverStorage } from './figures.ts'
import { firstAnswer } from './first-answer.ts'
import type { InstanceFolders } from './folders.ts'
import { Health, isSocketGone } from './health.ts'
import { type Intent, localSpec, needsRestart } from './intent.ts'
import { IntentFile } from './intent-file.ts'
import { launchInstance } from './launch.ts'
import { observationOf } from './observation.ts'
import { Retry } from './retry.ts'
import { stopDeadlines } from './stop-deadlines.ts'
import type { Surroundings } from './surroundings.ts'

/** A start that takes longer than this, for it recovers much, no longer keeps others from starting. */
const SLOT_MS = 10_000
/** How long the end of the control plane waits for a step under way. */
const LEAVE_MS = 2000

/** What the process does, as far as we know; `down`: there is none. */
type Activity = 'down' | 'starting' | 'running' | 'unresponsive' | 'stopping'

export class Instance {
  readonly folders: InstanceFolders
  readonly #host: Surroundings
  readonly #intent: IntentFile
  readonly #turns = new Turns()
  readonly #retry: Retry
  readonly #health = new Health()
  #server: ServerProcess | undefined
  #activity: Activity = 'down'
  #failure: InstanceFailure | undefined
  #startFailures = 0
  #launchedAt = new Date()
  #runningSince = 0
  #nextStop = 0
  #left = false
  #doorless = false
  /** No process works in the data folder: looked at, and nothing was launched since. */
  #provenDown = false

  constructor(host: Surroundings, folders: InstanceFolders, intent: Intent) {
    this.#host = host
    this.folders = folders
    this.#intent = new IntentFile(folders.intentFile, intent)
    this.#retry = new Retry(host.times.firstRetry, host.times.longestRetry)
  }

  get intent(): Intent {
    return this.#intent.current
  }

  get pid(): number | undefined {
    return this.#server?.pid
  }

  get address(): SocketAddress {
    return { socketFolder: this.folders.sockets, port: this.intent.port }
  }

  get diskLow(): boolean {
    return this.#health.disk?.low === true
  }

  get state(): InstanceState {
    // Asked to run with other figures, it is about to stop: nobody takes it for the one that was asked for.
    if (this.#activity === 'running' && this.intent.wanted === 'running' && this.#needsRestart()) return 'stopping'
    if (this.#activity !== 'down') return this.#activity
    if (this.intent.wanted !== 'running') return this.#turns.busy || !this.#isProvenDown() ? 'stopping' : 'stopped'
    return this.#failure === undefined ? 'starting' : 'failed'
  }

  observe(): ObservedInstance {
    // Nobody is told that a server runs whose end we have not heard of yet.
    if (this.#server?.alive() === false) this.#ended(this.#server)
    const { state, intent, folders } = this
    return observationOf(this.#host, {
      ...{ state, intent, folders },
      health: this.#health,
      failure: this.#failure,
      startFailures: this.#startFailures,
    })
  }

  /**
   * Asks for it to run with these figures; tries at once, whatever pause was left.
   * @throws ConditionError why it does not start
   */
  async start(spec: InstanceSpec): Promise<void> {
    if (this.intent.wanted === 'destroyed')
      throw new ConditionError('StorageReady', 'Destroyed', 'The data of this environment is being removed')
    await this.#want(intent => ({ ...intent, wanted: 'running', spec: localSpec(spec) }))
    // What stops now, or has to stop first for other figures, is started when it is down: that may take minutes.
    const waits = this.#activity === 'stopping' || (this.#server !== undefined && this.#needsRestart())
    if (waits) this.#goOn()
    else await this.#converge()
  }

  /** Asks for a clean stop; returns once that is written down. */
  async stop(): Promise<void> {
    await this.#want(intent => ({ ...intent, wanted: 'stopped' }))
    this.#goOn()
  }

  /** Asks for it to be brought down for good, its data kept until a time or not; waits a little for that. */
  async end(retainedUntil: string | undefined): Promise<void> {
    await this.#want(({ retainedUntil: _, ...intent }) => ({
      ...intent,
      wanted: 'destroyed',
      ...(retainedUntil === undefined ? {} : { retainedUntil }),
    }))
    const down = this.#converge().catch(() => undefined)
    await Promise.race([down, sleep(this.#host.times.destroyWait, undefined, { ref: false })])
  }

  /** No process of it is left, and none will be started. */
  get gone(): boolean {
    return this.state === 'stopped' && processesOf(this.folders.data).length === 0
  }

  /** Runs something while nothing else is done to the instance. */
  readonly exclusively = <T>(work: () => Promise<T>): Promise<T> => this.#turns.take(work)

  /** After a restart of the control plane: takes over the process that is still there, or starts one that was wanted. */
  async wake(): Promise<void> {
    const found = adoptServer(this.folders.data)
    if (found !== undefined) {
      this.#host.log.info({ instance: this.folders.name, pid: found.pid }, 'Adopted a running Postgres')
      this.#follow(found)
      // One that answers is running from the first look on: it was never away.
      await Promise.race([this.#whenReady(found), sleep(1000)])
    }
    this.#goOn()
  }

  /** Looks after the instance; called every tick. Never throws. */
  look(now: number): void {
    const server = this.#server
    if (this.#left) return
    if (server === undefined) this.#lookForStrays()
    else if (this.#activity === 'stopping') {
      if (!this.#turns.busy && (now >= this.#nextStop || !server.alive())) this.#goOn()
    } else if (!server.alive()) this.#ended(server)
    else if (this.#activity !== 'starting' && this.#health.isDue(now, this.#host.times.probeEvery))
      this.#checkUp(server).catch((error: unknown) => this.#complain('check-up', error))
  }

  /** Lets go of the process without stopping it: somebody else adopts it. Waits a little for the step under way. */
  async leave(): Promise<void> {
    this.#left = true
    this.#retry.cancel()
    const rest = this.#turns.take(async () => undefined)
    await Promise.race([rest, sleep(LEAVE_MS, undefined, { ref: false })])
  }

  /** Stops it while it stays wanted: the next start of the control plane brings it back. */
  async shutDown(): Promise<void> {
    await this.leave()
    await this.#turns.take(() => this.#bringDown())
  }

  /** Makes the server read its files again, for a new certificate. */
  reload(): void {
    if (this.#server !== undefined) reloadServer(this.#server)
  }

  // ---- towards what is wanted

  async #want(change: (before: Intent) => Intent): Promise<void> {
    this.#retry.cancel()
    try {
      await this.#intent.change(change)
    } catch (error) {
      throw conditionError(failureOf(error), error)
    }
  }

  /** In the background; what goes wrong is remembered as the failure. */
  #goOn(): void {
    this.#converge().catch(() => undefined)
  }

  #converge(): Promise<void> {
    return this.#turns
      .take(async () => {
        const { wanted } = this.intent
        const restart = this.#server !== undefined && this.#needsRestart()
        // A postmaster that was told to stop cannot be told to stay.
        const down = wanted !== 'running' || this.#activity === 'stopping' || restart
        if (down && !this.#left) await this.#bringDown()
        if (this.intent.wanted !== 'running' || this.#left) return
        if (this.#server === undefined) await this.#bringUp()
        else if (this.#activity !== 'stopping')
          await takeOverStorage(this.#host, this.folders, this.#intent, this.#server)
      })
      .finally(() => {
        if (this.intent.wanted !== 'running') this.#host.changed(this.intent)
      })
  }

  #needsRestart(): boolean {
    return (
      this.#doorless ||
      needsRestart(this.intent, { listen: this.#host.reach.listen, tls: this.#host.tls() !== undefined })
    )
  }

  async #bringUp(): Promise<void> {
    const giveBack = await this.#host.slots.take()
    try {
      this.#launchedAt = new Date()
      const server = adoptServer(this.folders.data) ?? (await launchInstance(this.#host, this.folders, this.#intent))
      this.#follow(server)
      const settled = Promise.race([this.#whenReady(server), sleep(SLOT_MS, undefined, { ref: false })])
      void settled.finally(giveBack)
      // One that was there after all may have been launched for other figures.
      if (!server.launched && this.#needsRestart()) this.#goOn()
    } catch (error) {
      giveBack()
      const failure = failureOf(error)
      this.#startFailed(failure, error)
      throw conditionError(failure, error)
    }
  }

  async #bringDown(): Promise<void> {
    // A control plane that died while it launched one may have left a postmaster that nobody knows of.
    const server = this.#server ?? adoptServer(this.folders.data)
    if (server === undefined) return orphansGone(this.folders.data)
    this.#server = server
    const deadlines = stopDeadlines(this.intent, this.#activity !== 'unresponsive', this.#host.times.cleanStop)
    this.#become('stopping')
    const result = await stopServer(server, deadlines)
    this.#nextStop = Date.now() + this.#host.times.cleanStop
    if (result === 'still there') {
      this.#complain('stop', new Error(`Process ${server.pid} of ${this.folders.name} does not end`))
      return
    }
    this.#host.log.info({ instance: this.folders.name, result }, 'Postgres stopped')
    this.#server = undefined
    this.#failure = undefined
    this.#become('down')
  }

  #isProvenDown(): boolean {
    this.#provenDown ||= this.#server === undefined && processesOf(this.folders.data).length === 0
    return this.#provenDown
  }

  /** What should be down and is not is brought down again, until it is. */
  #lookForStrays(): void {
    if (this.intent.wanted === 'running' || this.#turns.busy || this.#provenDown) return
    if (this.#isProvenDown()) this.#host.changed(this.intent)
    else this.#goOn()
  }

  #follow(server: ServerProcess): void {
    this.#server = server
    this.#provenDown = false
    this.#doorless = false
    this.#become('starting')
    if (server.launched) void server.exited.then(() => this.#ended(server))
  }

  /** Waits for a server to answer; its end is noticed elsewhere. */
  async #whenReady(server: ServerProcess): Promise<void> {
    const heard = await firstAnswer(server, this.address, this.#host.times, {
      waits: () => this.#isStarting(server),
      settle: () => takeOverConnectionLimit(this.address, this.#intent),
      onError: error => this.#complain('start', error),
    })
    if (!this.#isStarting(server)) return
    if (heard === 'answers') this.#isRunning()
    if (heard === 'doorless') this.#restartDoorless(server)
    if (heard !== 'silent') return
    // Adopted while it hangs, it is no more starting than one that began to hang later.
    this.#health.begin(Date.now(), this.#host.times.probeEvery, false)
    this.#become('unresponsive')
  }

  /** Only a restart brings back the socket of a running server, which is our way in. */
  #restartDoorless(server: ServerProcess): void {
    if (this.#doorless || this.#server !== server || this.#activity === 'stopping') return
    this.#doorless = true
    this.#host.log.warn({ instance: this.folders.name }, 'The socket of a running Postgres was removed: restarting it')
    this.#retry.later(() => this.#goOn())
    this.#host.changed(this.intent)
  }

  #isStarting(server: ServerProcess): boolean {
    return this.#server === server && this.#activity === 'starting' && !this.#left && server.alive()
  }

  #isRunning(): void {
    const { times, metrics } = this.#host
    this.#failure = undefined
    this.#startFailures = 0
    this.#runningSince = Date.now()
    this.#health.begin(this.#runningSince, times.probeEvery)
    metrics.starts.inc({ result: 'ready' })
    this.#become('running')
    this.#readRoom().catch((error: unknown) => this.#complain('disk', error))
  }

  #ended(server: ServerProcess): void {
    if (this.#server !== server || this.#activity === 'stopping' || this.#left) return
    const starting = this.#activity === 'starting'
    this.#server = undefined
    this.#activity = 'down'
    const { folders } = this
    const ended = { folders, port: this.intent.port, launchedAt: this.#launchedAt, starting }
    this.#turns
      .take(async () => {
        const failure = await explainEnd(ended)
        // Somebody else may have started it while we read its log.
        if (this.#server !== undefined) return
        if (starting) this.#startFailed(failure, undefined)
        else this.#crashed(failure)
      })
      .catch((error: unknown) => this.#complain('explain', error))
  }

  #crashed(failure: InstanceFailure): void {
    this.#host.metrics.crashes.inc()
    this.#host.log.warn({ instance: this.folders.name, ...failure }, 'Postgres ended by itself')
    if (Date.now() - this.#runningSince > this.#host.times.stable) this.#retry.forget()
    this.#tryLater(failure)
  }

  #startFailed(failure: InstanceFailure, error: unknown): void {
    this.#startFailures++
    this.#host.metrics.starts.inc({ result: failure.reason })
    const cause = error === undefined ? {} : { err: error }
    this.#host.log.warn({ instance: this.folders.name, ...failure, ...cause }, 'Postgres did not start')
    this.#tryLater(failure)
  }

  #tryLater(failure: InstanceFailure): void {
    this.#failure = failure
    // Nobody looks at the disk of what does not run, and a full one may be why.
    this.#readRoom().catch((error: unknown) => this.#complain('disk', error))
    this.#retry.later(() => this.#goOn())
    this.#become('down')
  }

  #become(activity: Activity): void {
    this.#activity = activity
    this.#host.changed(this.intent)
  }

  // ---- regular looks

  async #checkUp(server: ServerProcess): Promise<void> {
    const answered = await this.#health.probe(this.address, this.#host.times.probeDeadline)
    if (!answered) this.#host.metrics.failedProbes.inc()
    if (this.#server !== server || (this.#activity !== 'running' && this.#activity !== 'unresponsive')) return
    if (!answered && isSocketGone(this.address)) this.#restartDoorless(server)
    const activity = this.#health.responsive ? 'running' : 'unresponsive'
    if (activity === 'running' && this.#activity === 'unresponsive')
      await takeOverConnectionLimit(this.address, this.#intent)
    if (activity !== this.#activity) this.#become(activity)
    await this.#readRoom()
    await dropOldLogs(this.folders.log)
  }

  async #readRoom(): Promise<void> {
    if (!(await this.#health.readDisk(this.folders.data))) return
    const fields = { instance: this.folders.name, ...this.#health.disk }
    this.#host.log.warn(fields, this.diskLow ? 'The disk is nearly full' : 'The disk has room again')
    this.#host.changed(this.intent)
  }

  #complain(work: string, error: unknown): void {
    this.#host.metrics.errors.inc({ work })
    this.#host.log.error({ instance: this.folders.name, err: error }, `Trouble with ${work}`)
  }
}
