/**
 * Folds what stands in the resource store into the rows, while its process holds the lease: Environments into
 * environments and operations, DeletionRecords into what ended. At its start it looks at every resource and at every row
 * that should have one; from then on at what changes, and at deadlines by a slow clock.
 */
import type { DeletionRecord } from '../../crds/deletion-record.ts'
import type { Environment } from '../../crds/environment.ts'
import { keyOf, keyText, type Resource, type ResourceKey } from '../../lib/model/resource.ts'
import type { Cache } from '../../runtime/controller/cache.ts'
import { Controller, type ReconcileResult } from '../../runtime/controller/controller.ts'
import type { ControlMetrics } from '../../runtime/controller/observers.ts'
import { PRIORITY } from '../../runtime/controller/work-queue.ts'
import { boundRows } from '../store/environment-folds.ts'
import { LeaseLostError } from '../store/fenced-transactions.ts'
import { failOverdue } from './fail-overdue.ts'
import { projectDeletionRecord } from './fold-deletion-record.ts'
import { InitialKeys } from './initial-keys.ts'
import { projectEnvironment } from './project-environment.ts'
import type { Projection } from './projection.ts'

export interface ProjectorOptions extends Projection {
  readonly environments: Cache<Environment>
  readonly deletionRecords: Cache<DeletionRecord>
  readonly concurrency?: number
  readonly controlMetrics?: ControlMetrics | undefined
  /** How often deadlines are looked at. */
  readonly sweepEveryMs?: number
  /** When a resource that belongs to no project is looked at again: its project may be made later. */
  readonly lookAgainAfterMs?: number
}

export class Projector {
  readonly #options: ProjectorOptions
  readonly #environments: Controller
  readonly #deletionRecords: Controller
  readonly #initial: InitialKeys
  readonly #alone = new Set<string>()
  readonly #newsSince = new Map<string, number>()
  readonly #unsubscribe: () => void
  #sweeper: NodeJS.Timeout | undefined
  #sweeping: Promise<void> | undefined

  constructor(options: ProjectorOptions) {
    this.#options = options
    this.#initial = new InitialKeys(options.log)
    this.#environments = this.#controller('environment-projector', key => this.#project(key))
    this.#deletionRecords = this.#controller('deletion-record-projector', key => projectDeletionRecord(key, options))
    this.#unsubscribe = options.environments.subscribe(({ object, initial }) => {
      const key = keyText(keyOf(object))
      if (!initial && !this.#newsSince.has(key)) this.#newsSince.set(key, performance.now())
    })
  }

  /**
   * Starts; both caches must be synced.
   * @returns once everything that stood there at the start was folded
   */
  async start(signal: AbortSignal): Promise<void> {
    const { environments, deletionRecords, sql, sweepEveryMs = 1_000 } = this.#options
    const expect = (kind: string, objects: readonly Resource[]): void =>
      this.#initial.expect(objects.map(object => `${kind} ${keyText(keyOf(object))}`))
    expect('deletion-record-projector', deletionRecords.list())
    expect('environment-projector', environments.list())
    this.#deletionRecords.watch(deletionRecords)
    this.#environments.watch(environments)
    const rows = await boundRows(sql)
    this.#initial.expect(rows.map(row => `environment-projector ${row.namespace}/${row.resourceName}`))
    for (const { namespace, resourceName } of rows) this.look({ namespace, name: resourceName }, PRIORITY.resync)
    // What ended comes first: a name that was used again then meets the end of its predecessor.
    this.#deletionRecords.start()
    this.#environments.start()
    await this.#initial.done(signal)
    this.#sweeper = setInterval(() => this.#sweep(), sweepEveryMs)
  }

  /** Looks at an environment soon, although nothing may have changed. */
  look(key: ResourceKey, priority: number = PRIORITY.event): void {
    this.#environments.enqueue(key, priority)
  }

  /** Begins nothing more and waits for what runs. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    clearInterval(this.#sweeper)
    await Promise.all([this.#environments.stop(), this.#deletionRecords.stop(), this.#sweeping])
  }

  #controller(name: string, project: (key: ResourceKey) => Promise<ReconcileResult | undefined>): Controller {
    return new Controller({
      name,
      log: this.#options.log,
      concurrency: this.#options.concurrency ?? 8,
      metrics: this.#options.controlMetrics,
      reconcile: async key => {
        const newsSince = this.#takeNews(name, key)
        let result: ReconcileResult | undefined
        try {
          result = await project(key)
        } catch (error) {
          // The next term, here or elsewhere, folds everything anew.
          if (error instanceof LeaseLostError) return
          this.#initial.failed(`${name} ${keyText(key)}`, error)
          throw error
        }
        this.#initial.folded(`${name} ${keyText(key)}`)
        if (newsSince !== undefined) this.#options.metrics.folded((performance.now() - newsSince) / 1000)
        return result
      },
    })
  }

  async #project(key: ResourceKey): Promise<ReconcileResult | undefined> {
    const isAlone = await projectEnvironment(key, this.#options)
    const { metrics, log } = this.#options
    if (isAlone && !this.#alone.has(keyText(key)))
      log.info({ ...key }, 'An Environment belongs to no project of ours and is left alone')
    if (isAlone) this.#alone.add(keyText(key))
    else this.#alone.delete(keyText(key))
    metrics.leftAlone(this.#alone.size)
    return isAlone ? { requeueAfterMs: this.#options.lookAgainAfterMs ?? 15_000 } : undefined
  }

  #takeNews(controller: string, key: ResourceKey): number | undefined {
    if (controller !== 'environment-projector') return undefined
    const since = this.#newsSince.get(keyText(key))
    this.#newsSince.delete(keyText(key))
    return since
  }

  #sweep(): void {
    this.#sweeping ??= this.#sweepOnce().finally(() => (this.#sweeping = undefined))
  }

  async #sweepOnce(): Promise<void> {
    try {
      await failOverdue(this.#options)
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        this.#options.log.warn({ err: error }, 'A sweep failed; the next one follows')
    }
  }
}
