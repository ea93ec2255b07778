/**
 * What runs while this process holds the lease: first everything that stands in the store is folded, then intents are
 * carried. In that order, so that a create which was lost sight of meets the end of its resource before it is tried again.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Projector, type ProjectorOptions } from '../projector/projector.ts'
import type { ControlPlaneSql } from '../store/fenced-transactions.ts'
import { fencedTransactions } from '../store/fenced-transactions.ts'
import type { HeldLease } from '../store/lease-keeper.ts'
import { pendingIntentFigures } from '../store/pending-intents.ts'
import { assertBoundStore } from './assert-bound-store.ts'
import { Dispatcher } from './dispatcher.ts'
import { startNamespaceRemover } from './namespace-remover.ts'
import type { ProjectNamespaces } from './project-namespaces.ts'

/** What outlives a term. */
export interface TermOptions extends Omit<ProjectorOptions, 'fenced' | 'leads' | 'sql' | 'concurrency'> {
  readonly database: ControlPlaneSql
  readonly namespaces?: ProjectNamespaces | undefined
  readonly dispatchConcurrency?: number
  readonly projectConcurrency?: number
  readonly pollEveryMs?: number
}

const RESTART_AFTER_MS = 500

export class LeaseTerm {
  readonly #options: TermOptions
  readonly #lease: HeldLease
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #projector: Projector | undefined
  #dispatcher: Dispatcher | undefined
  #stopRemover: (() => Promise<void>) | undefined

  /** `ready` is called once everything that stood there was folded. */
  constructor(lease: HeldLease, options: TermOptions, ready: () => void) {
    this.#lease = lease
    this.#options = options
    this.#running = this.#run(ready)
  }

  /** Looks for intents; nothing is lost before the dispatcher runs, it begins with a look at all of them. */
  wake(environmentRow?: string): void {
    this.#dispatcher?.wake(environmentRow)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#options.metrics.pendingFrom(undefined)
    await this.#running
    await this.#stopRemover?.()
    await this.#dispatcher?.stop()
    await this.#projector?.stop()
  }

  async #run(ready: () => void): Promise<void> {
    const { signal } = this.#stopping
    const { environments, deletionRecords, log, database, metrics } = this.#options
    while (!signal.aborted) {
      try {
        await Promise.all([environments.waitForSync(signal), deletionRecords.waitForSync(signal)])
        await this.#start(signal)
        signal.throwIfAborted()
        metrics.pendingFrom(() => pendingIntentFigures(database))
        log.info({ term: this.#lease.term }, 'Everything is folded; intents are being carried')
        ready()
        return
      } catch (error) {
        await this.#projector?.stop()
        if (this.#stopping.signal.aborted) return
        log.warn({ err: error }, 'Cannot begin to project; trying again')
        await delay(RESTART_AFTER_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { database, namespaces, dispatchConcurrency, projectConcurrency, pollEveryMs, ...shared } = this.#options
    await assertBoundStore(database, shared.store)
    const underLease = {
      sql: database,
      fenced: fencedTransactions(database, this.#lease),
      leads: () => this.#lease.leads(),
    }
    const projector = new Projector({
      ...shared,
      ...underLease,
      ...(projectConcurrency !== undefined && { concurrency: projectConcurrency }),
    })
    this.#projector = projector
    await projector.start(signal)
    signal.throwIfAborted()
    this.#dispatcher = new Dispatcher({
      store: shared.store,
      operatorNamespace: shared.operatorNamespace,
      log: shared.log,
      namespaces,
      controlMetrics: shared.controlMetrics,
      ...underLease,
      ...(dispatchConcurrency !== undefined && { concurrency: dispatchConcurrency }),
      ...(pollEveryMs !== undefined && { pollEveryMs }),
      settled: key => projector.look(key),
    })
    this.#dispatcher.start()
    if (namespaces !== undefined)
      this.#stopRemover = startNamespaceRemover({ namespaces, ...underLease, log: shared.log })
  }
}
