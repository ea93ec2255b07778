/**
 * Carries intents from the control-plane database to the resource store: serially and in order for one environment,
 * many environments at once. Knows an environment by its row; runs only while its process holds the lease.
 *
 * Woken by whoever committed an intent (this process at once, other replicas by a notification), and by a slow poll that
 * finds whatever a wake-up was lost for. Nothing is dropped: what cannot be carried now is tried again with back-off.
 */
import type { ResourceKey } from '../../lib/model/resource.ts'
import { Controller } from '../../runtime/controller/controller.ts'
import type { ControlMetrics } from '../../runtime/controller/observers.ts'
import type { Log } from '../../runtime/log/log.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { LeaseLostError } from '../store/fenced-transactions.ts'
import { environmentsWithIntents, nextIntent, noteAttemptError, type PendingIntent } from '../store/pending-intents.ts'
import { type CarryContext, carryIntent, TryLaterError } from './carry-intent.ts'

export interface DispatcherOptions extends CarryContext {
  /** Environments that are worked on at once. */
  readonly concurrency?: number
  readonly controlMetrics?: ControlMetrics | undefined
  readonly pollEveryMs?: number
  /** Called after an intent's fate was recorded. */
  readonly settled: (key: ResourceKey) => void
}

/** Rounds without an end, in a row, before the back-off takes over. */
const MAX_ROUNDS = 8

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #controller: Controller
  #poll: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #lookAgain = false

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#controller = new Controller({
      name: 'dispatcher',
      log: options.log,
      concurrency: options.concurrency ?? 16,
      metrics: options.controlMetrics,
      reconcile: ({ name }, { signal, log }) => this.#carryAll(name, signal, log),
    })
  }

  start(): void {
    this.#controller.start()
    this.#poll = setInterval(() => this.wake(), this.#options.pollEveryMs ?? 2_000)
    this.wake()
  }

  /** Looks for intents: of one environment at once, else of all. Never throws. */
  wake(environmentRow?: string): void {
    if (environmentRow !== undefined) {
      this.#controller.enqueue({ namespace: '', name: environmentRow })
      return
    }
    this.#lookAgain = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      if (this.#lookAgain) this.wake()
    })
  }

  /** Begins nothing more and waits for what runs. */
  async stop(): Promise<void> {
    clearInterval(this.#poll)
    this.#lookAgain = false
    await this.#controller.stop()
    await this.#looking
  }

  async #look(): Promise<void> {
    while (this.#lookAgain) {
      this.#lookAgain = false
      try {
        for (const row of await environmentsWithIntents(this.#options.sql)) this.wake(row)
      } catch (error) {
        this.#options.log.warn({ err: error }, 'Cannot look for intents; the next poll will')
      }
    }
  }

  async #carryAll(environmentRow: string, signal: AbortSignal, log: Log): Promise<void> {
    for (let rounds = 0; rounds < MAX_ROUNDS && !signal.aborted; ) {
      const intent = await nextIntent(this.#options.sql, environmentRow)
      if (intent === undefined) return
      const about = log.child({ requestId: intent.requestId, operationId: intent.operationId, verb: intent.verb })
      try {
        const outcome = await carryIntent(intent, { ...this.#options, log: about })
        rounds = outcome === 'again' ? rounds + 1 : 0
        if (outcome === 'settled') about.info({}, 'Carried what was asked for')
      } catch (error) {
        if (error instanceof LeaseLostError) return
        await this.#noteError(intent, error)
        throw error
      }
      if (rounds === 0) this.#options.settled({ namespace: intent.namespace, name: intent.resourceName })
    }
    if (!signal.aborted) throw new TryLaterError('The resource kept changing under its intent')
  }

  /** Best effort: the database may be what is away. */
  async #noteError(intent: PendingIntent, error: unknown): Promise<void> {
    if (!isStoreError(error) && !(error instanceof TryLaterError)) return
    await this.#options.fenced(sql => noteAttemptError(sql, intent.intentId, error.message)).catch(() => undefined)
  }
}
