import { Worker } from 'node:worker_threads'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Log } from '../log/log.ts'
import { StoreError } from '../store/store-error.ts'
import { LeaseTerm } from './lease-term.ts'
import type { LeaseWorkerInput, LeaseWorkerMessage, LeaseWorkerOrder } from './lease-worker.ts'
import type { ClusterAccess } from './sign-in.ts'

export interface LeaseElectorOptions {
  readonly access: ClusterAccess
  /** Where the Lease is, and its name. */
  readonly namespace: string
  readonly name: string
  /** Unique to this process, such as `<pod>_<uid>`. A process that is started again with the same one need not wait. */
  readonly identity: string
  /** Who calls, `name/version`. */
  readonly userAgent: string
  readonly log: Log
  readonly registry: Registry
  /** How long others wait for a holder that says nothing. */
  readonly durationSeconds?: number
  /** When a leader that could not renew stops acting; well below the duration. */
  readonly renewDeadlineMs?: number
  readonly retryMs?: number
}

/** One of several processes that contend for a Lease. */
export interface LeaseElector {
  /** Resolves once this process leads; never, when it is stopped before. */
  readonly elected: Promise<undefined>
  /** Resolves once it is known who leads: this process or another one. */
  readonly decided: Promise<void>
  /**
   * Resolves with the reason when somebody else leads after us, or the contender died: end the process then, since what it
   * remembers is out of date. Renewals that fail are not that: while they do, `mustLead` refuses.
   */
  readonly lost: Promise<string>
  isLeading(): boolean
  /** For what may be done by a leader only. @throws StoreError `Unavailable` when we do not lead, or cannot know it */
  mustLead(): void
  /** Gives the lease back; the next one leads within about two seconds. First let end what a leader does. */
  stop(): Promise<void>
}

const STOP_DEADLINE_MS = 6_000

/** Contends for a Lease until stopped, in a thread of its own, so that a busy main loop does not lose it. */
export const startLeaseElector = async (options: LeaseElectorOptions): Promise<LeaseElector> => {
  const { access, namespace, name, identity, userAgent, registry } = options
  const { durationSeconds = 15, renewDeadlineMs = 10_000, retryMs = 2_000 } = options
  const log = options.log.child({ lease: `${namespace}/${name}`, identity })
  const memory = LeaseTerm.memory()
  const term = new LeaseTerm(memory, renewDeadlineMs)
  const metrics = electionMetrics(registry, name, term)
  const { origin, prefix } = access
  const input: LeaseWorkerInput = {
    ...{ origin, prefix, namespace, name, identity, userAgent, durationSeconds, renewDeadlineMs, retryMs },
    signIn: await access.signIn(),
    term: memory,
  }
  const worker = new Worker(new URL('./lease-worker.ts', import.meta.url), { workerData: input })
  const [elected, decided, lost, stopped] = [
    Promise.withResolvers<undefined>(),
    Promise.withResolvers<undefined>(),
    Promise.withResolvers<string>(),
    Promise.withResolvers<undefined>(),
  ]
  let stopping = false

  const signIn = async (afresh: boolean): Promise<void> => {
    try {
      const order: LeaseWorkerOrder = { type: 'sign-in', signIn: await access.signIn(afresh), afresh }
      worker.postMessage(order)
    } catch (error) {
      // The call that asked fails at its deadline, and the next one asks again.
      log.warn({ err: error }, 'Cannot sign in to renew the lease')
    }
  }

  worker.on('message', (message: LeaseWorkerMessage) => {
    if (message.type === 'elected') {
      log.info({}, 'This process leads')
      metrics.moved()
      elected.resolve(undefined)
      decided.resolve(undefined)
    } else if (message.type === 'following') {
      log.info({ holder: message.holder }, 'Another process leads')
      if (message.holder !== '') metrics.moved()
      decided.resolve(undefined)
    } else if (message.type === 'renewed') metrics.renewed(message.tookMs)
    else if (message.type === 'failed') {
      metrics.failed()
      log.warn({ why: message.why, leading: term.holds() }, 'Cannot look after the lease')
    } else if (message.type === 'lost') lost.resolve(`The lease ${namespace}/${name} was taken by ${message.to}`)
    else if (message.type === 'sign-in') void signIn(message.afresh)
    else stopped.resolve(undefined)
  })
  worker.on('error', error => {
    log.error({ err: error }, 'The thread that keeps the lease failed')
    term.ended()
    lost.resolve(`The thread that keeps the lease ${namespace}/${name} failed`)
    stopped.resolve(undefined)
  })
  worker.on('exit', () => {
    term.ended()
    stopped.resolve(undefined)
  })

  return {
    elected: elected.promise,
    decided: decided.promise,
    lost: lost.promise,
    isLeading: () => term.holds(),
    mustLead: () => {
      if (!term.holds()) throw new StoreError('Unavailable', `Does not hold the lease ${namespace}/${name}`)
    },
    stop: async () => {
      if (!stopping) worker.postMessage({ type: 'release' } satisfies LeaseWorkerOrder)
      stopping = true
      const late = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => late.resolve(undefined), STOP_DEADLINE_MS)
      await Promise.race([stopped.promise, late.promise])
      clearTimeout(timer)
      await worker.terminate()
    },
  }
}

interface ElectionMetrics {
  readonly failed: () => void
  readonly moved: () => void
  readonly renewed: (tookMs: number) => void
}

/** Under client-go's name where it has one. */
const electionMetrics = (registry: Registry, name: string, term: LeaseTerm): ElectionMetrics => {
  new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process leads: 1 or 0',
    labelNames: ['name'],
    registers: [registry],
    collect() {
      this.set({ name }, term.holds() ? 1 : 0)
    },
  })
  const failures = new Counter({
    name: 'leader_election_failures_total',
    help: 'Attempts to renew or take the lease that got no answer',
    labelNames: ['name'],
    registers: [registry],
  })
  const transitions = new Counter({
    name: 'leader_election_transitions_total',
    help: 'How often this process saw the lease in other hands than before, its own included',
    labelNames: ['name'],
    registers: [registry],
  })
  const renewals = new Histogram({
    name: 'leader_election_renew_seconds',
    help: 'How long the leader took to renew the lease',
    labelNames: ['name'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  failures.inc({ name }, 0)
  transitions.inc({ name }, 0)
  renewals.zero({ name })
  return {
    failed: () => failures.inc({ name }),
    moved: () => transitions.inc({ name }),
    renewed: tookMs => renewals.observe({ name }, tookMs / 1000),
  }
}
