/** Hashes and checks passwords in a process of their own, a few at a time; who cannot be served soon is told so. */
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { decoyHash } from '../../../lib/credentials/argon2-hash.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { lastOf, nextOf, type Waiting } from './hash-queue.ts'
import type { HashJob, HashResult } from './hash-worker.ts'
import { COME_AGAIN_SECONDS } from './recent-tries.ts'

const WORKER = new URL('./hash-worker.ts', import.meta.url)
const MAX_WAITING = 32
const WAIT_MS = 2000
/** A job that is not done by then never will be: the process is ended and begun anew. */
const JOB_MS = 15_000

type Work = Omit<HashJob, 'id'>

interface Job extends Waiting, Work {
  readonly id: number
  readonly since: number
  readonly resolve: (result: HashResult) => void
  readonly reject: (error: Error) => void
  timer: NodeJS.Timeout
}

const busy = (): DomainError =>
  new DomainError('login_busy', 'Too many people sign in at the moment, try again', {
    retryAfterSeconds: COME_AGAIN_SECONDS,
  })

/** How many at once: one for each core that the process may use, but for one that is left to everything else. */
const atOnce = (): number => Math.max(1, availableParallelism() - 1)

export class PasswordHasher {
  readonly #log: Log
  readonly #waits: Histogram
  readonly #refused: Counter
  #waiting: Job[] = []
  readonly #running = new Map<number, Job>()
  #worker: ChildProcess | undefined
  #arrivals = 0
  #stopped = false
  /** What is checked where there is nothing to check. */
  readonly #decoy = decoyHash()

  constructor(log: Log, registry: Registry) {
    this.#log = log
    const labels = { registers: [registry] }
    this.#waits = new Histogram({
      name: 'svc_password_wait_seconds',
      help: 'How long a password waited to be hashed or checked',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 2],
      ...labels,
    })
    this.#refused = new Counter({
      name: 'svc_password_refused_total',
      help: 'Passwords that could not be looked at in time',
      ...labels,
    })
    const load = (): Readonly<Record<string, number>> => ({
      waiting: this.#waiting.length,
      running: this.#running.size,
    })
    new Gauge({
      name: 'svc_password_jobs',
      help: 'Passwords that wait to be hashed or checked, and those being so',
      labelNames: ['state'],
      ...labels,
      collect() {
        for (const [state, value] of Object.entries(load())) this.set({ state }, value)
      },
    })
  }

  /** A hash to keep, argon2id as a PHC string. @throws DomainError `login_busy` */
  async hash(password: string): Promise<string> {
    const { hash } = await this.#run({ password }, 0)
    if (hash === undefined) throw new Error('A password was not hashed')
    return hash
  }

  /**
   * Whether a password fits a hash. Without a hash the work is the same and it never fits, so that nobody learns by time
   * which accounts there are. `rank` decides who waits for whom: the lowest first.
   * @throws DomainError `login_busy`
   */
  async fits(password: string, hash: string | undefined, rank: number): Promise<boolean> {
    const against = hash ?? this.#decoy
    const { fits } = await this.#run({ password, against }, rank)
    return fits === true && hash !== undefined
  }

  /** Whether a password of such a rank would be turned away now: nobody who waits would be served later. */
  isFullFor(rank: number): boolean {
    const last = lastOf(this.#waiting)
    return this.#waiting.length >= MAX_WAITING && last !== undefined && last.rank <= rank
  }

  /** What somebody gets whose password is not looked at. */
  turnAway(): DomainError {
    this.#refused.inc()
    return busy()
  }

  stop(): void {
    this.#stopped = true
    for (const job of this.#waiting.splice(0)) this.#refuse(job)
    this.#worker?.disconnect()
    this.#worker = undefined
  }

  async #run(work: Work, rank: number): Promise<HashResult> {
    const result = await new Promise<HashResult>((resolve, reject) => {
      const id = ++this.#arrivals
      const job: Job = {
        ...work,
        id,
        rank,
        arrival: id,
        since: performance.now(),
        resolve,
        reject,
        timer: setTimeout(() => this.#giveUp(id), WAIT_MS),
      }
      this.#waiting.push(job)
      if (this.#waiting.length > MAX_WAITING) this.#dropLast()
      this.#serve()
    })
    if (result.error !== undefined) throw new Error(`A password could not be looked at: ${result.error}`)
    return result
  }

  #dropLast(): void {
    const last = lastOf(this.#waiting)
    if (last !== undefined) this.#giveUp(last.id)
  }

  /** A job that waited too long, or for which there is no room. */
  #giveUp(id: number): void {
    const job = this.#waiting.find(each => each.id === id)
    if (job === undefined) return
    this.#waiting = this.#waiting.filter(each => each !== job)
    this.#refuse(job)
  }

  #refuse(job: Job): void {
    clearTimeout(job.timer)
    job.reject(this.turnAway())
  }

  #serve(): void {
    if (this.#stopped) {
      for (const job of this.#waiting.splice(0)) this.#refuse(job)
      return
    }
    while (this.#running.size < atOnce()) {
      const job = nextOf(this.#waiting)
      if (job === undefined) return
      this.#waiting = this.#waiting.filter(each => each !== job)
      this.#waits.observe((performance.now() - job.since) / 1000)
      clearTimeout(job.timer)
      job.timer = setTimeout(() => this.#hangs(), JOB_MS)
      this.#running.set(job.id, job)
      const { id, password, against } = job
      this.#process().send({ id, password, ...(against === undefined ? {} : { against }) } satisfies HashJob)
    }
  }

  #hangs(): void {
    this.#log.error({}, 'The process that checks passwords does not answer; it is begun anew')
    this.#worker?.kill('SIGKILL')
  }

  #process(): ChildProcess {
    if (this.#worker !== undefined) return this.#worker
    // Nothing of our environment: no secret of ours is there.
    const worker = fork(WORKER, [], { env: {}, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    worker.on('message', (result: HashResult) => this.#done(result))
    worker.once('error', error => this.#lost(worker, error))
    worker.once('exit', (code, signal) => this.#lost(worker, new Error(`exit ${code ?? signal}`)))
    // The server ends without waiting for it; it ends when the pipe does.
    worker.unref()
    worker.channel?.unref()
    this.#worker = worker
    return worker
  }

  #done(result: HashResult): void {
    const job = this.#running.get(result.id)
    if (job === undefined) return
    this.#running.delete(result.id)
    clearTimeout(job.timer)
    job.resolve(result)
    this.#serve()
  }

  #lost(worker: ChildProcess, error: Error): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    if (!this.#stopped) this.#log.error({ err: error }, 'The process that checks passwords ended')
    const jobs = [...this.#running.values()]
    this.#running.clear()
    for (const job of jobs) this.#refuse(job)
    this.#serve()
  }
}
