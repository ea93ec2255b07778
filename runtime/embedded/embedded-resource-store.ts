/**
 * The ResourceStore over Postgres: an objects table and a compacted change log (see migrations/). Reads are one statement,
 * writes two round trips: the row is locked, the change judged here, then written under the lock that orders versions.
 */
import { randomUUID } from 'node:crypto'
import type { Registry } from 'prom-client'
import type { Resource, ResourceKey, ResourceType } from '../../lib/model/resource.ts'
import { type Log, silentLog } from '../log/log.ts'
import type {
  MergePatch,
  NewResource,
  Preconditions,
  ResourceList,
  ResourcePatch,
  ResourceStore,
  Selector,
  WatchEvent,
} from '../store/resource-store.ts'
import type { StoreClock } from '../store/store-clock.ts'
import { isStoreError, StoreError } from '../store/store-error.ts'
import { ChangeListener } from './change-listener.ts'
import { readObjects } from './change-log.ts'
import { Compactor, compact, type Retention } from './compaction.ts'
import { type Change, creationOf, deletedObject, patchedObject, statusPatchedObject } from './object-changes.ts'
import { OBJECT_COLUMNS, type ObjectRow, resourceFromRow, resourceOf } from './object-row.ts'
import { type StoreMetrics, silentMetrics, storeMetrics } from './store-metrics.ts'
import { type Statement, StorePool } from './store-pool.ts'
import { type WatchOptions, watchChanges } from './watch-changes.ts'

export interface EmbeddedStoreOptions {
  /** Connects as the role that owns the store's database; it must have been migrated. */
  readonly url: string
  /** Who writes: becomes `metadata.lastManager`, and shows in pg_stat_activity and metrics. */
  readonly clientName: string
  readonly log?: Log
  readonly registry?: Registry
  /** Told by every `get` what the database says the time is. */
  readonly time?: StoreClock | undefined
  /** Connections at most, the listener's aside. Default 6. */
  readonly maxConnections?: number
  /** How often a watch looks by itself, should it not hear of changes. Default 5000. */
  readonly pollEveryMs?: number
  /** How often a quiet watch says where it stands. Default 30,000. */
  readonly bookmarkEveryMs?: number
  /** What stays of the change log. Default: an hour, and the newest 1000 versions anyway. */
  readonly retention?: Retention
  /** How often the log is compacted. Default 60,000. */
  readonly compactEveryMs?: number
}

const DEFAULT_RETENTION: Retention = { keepMs: 60 * 60_000, keepAtLeast: 1000 }

export class EmbeddedResourceStore implements ResourceStore {
  readonly #options: EmbeddedStoreOptions
  readonly #log: Log
  readonly #metrics: StoreMetrics
  readonly #pool: StorePool
  readonly #listener: ChangeListener
  readonly #compactor: Compactor
  readonly #closed = new AbortController()
  #closing: Promise<void> | undefined

  /** Connects at the first call, so a database that is away now is no error yet. */
  constructor(options: EmbeddedStoreOptions) {
    const { url, clientName } = options
    this.#options = options
    this.#log = (options.log ?? silentLog).child({ store: clientName })
    this.#metrics = options.registry === undefined ? silentMetrics : storeMetrics(options.registry, clientName)
    const shared = { log: this.#log, metrics: this.#metrics }
    this.#pool = new StorePool({ url, applicationName: clientName, maxConnections: options.maxConnections ?? 6 })
    this.#listener = new ChangeListener({ url, applicationName: `${clientName} listener`, ...shared })
    this.#compactor = new Compactor(
      this.#pool,
      options.retention ?? DEFAULT_RETENTION,
      options.compactEveryMs ?? 60_000,
      this.#log,
      this.#metrics,
    )
  }

  async identity(): Promise<string> {
    return this.#timed('identity', async () => {
      await this.#pool.query({
        name: 'identify',
        text: 'insert into store_identity (identity) values ($1) on conflict do nothing',
        values: [randomUUID()],
      })
      const [row] = await this.#pool.query<{ identity: string }>({
        name: 'identity',
        text: 'select identity::text from store_identity',
        values: [],
      })
      if (row === undefined) throw new StoreError('Unavailable', 'The store has lost its identity')
      return row.identity
    })
  }

  async get<R extends Resource>(type: ResourceType<R>, key: ResourceKey): Promise<R | undefined> {
    return this.#timed('get', async () => {
      const [row] = await this.#pool.query<ObjectRow & { readonly storeMs: number }>({
        name: 'get',
        text: `select ${OBJECT_COLUMNS}, (extract(epoch from clock_timestamp()) * 1000)::float8 as "storeMs"
          from objects where resource = $1 and namespace = $2 and name = $3`,
        values: [resourceOf(type), key.namespace, key.name],
      })
      if (row !== undefined) this.#options.time?.note(row.storeMs)
      return row === undefined ? undefined : resourceFromRow(type, row)
    })
  }

  async list<R extends Resource>(type: ResourceType<R>, selector?: Selector): Promise<ResourceList<R>> {
    return this.#timed('list', async () => {
      const { rows, head } = await readObjects(this.#pool, resourceOf(type), selector)
      return { items: rows.map(row => resourceFromRow(type, row)), resourceVersion: head }
    })
  }

  watch<R extends Resource>(type: ResourceType<R>, options: WatchOptions): AsyncIterable<WatchEvent<R>> {
    return watchChanges(type, options, {
      pool: this.#pool,
      listener: this.#listener,
      log: this.#log,
      metrics: this.#metrics,
      closed: this.#closed.signal,
      pollEveryMs: this.#options.pollEveryMs ?? 5000,
      bookmarkEveryMs: this.#options.bookmarkEveryMs ?? 30_000,
    })
  }

  async create<R extends Resource>(type: ResourceType<R>, resource: NewResource<R['spec']>): Promise<R> {
    return this.#timed('create', async () => {
      const { next, body } = creationOf(type, resource, randomUUID(), this.#options.clientName)
      const { namespace, name, uid, labels } = next.metadata
      const [row] = await this.#pool.query<ObjectRow>({
        name: 'create',
        text: `select ${OBJECT_COLUMNS} from create_object($1, $2, $3, $4, $5, $6)`,
        values: [resourceOf(type), namespace, name, uid, JSON.stringify(labels), body],
      })
      if (row === undefined) throw new StoreError('AlreadyExists', `${type.kind} ${namespace}/${name} already exists`)
      return resourceFromRow(type, row)
    })
  }

  async patch<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    patch: ResourcePatch,
    preconditions: Preconditions,
  ): Promise<R> {
    return this.#timed('patch', () =>
      this.#change(type, key, current => patchedObject(type, current, patch, preconditions, this.#options.clientName)),
    )
  }

  async patchStatus<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    status: MergePatch,
    preconditions: Preconditions,
  ): Promise<R> {
    return this.#timed('patchStatus', () =>
      this.#change(type, key, current => statusPatchedObject(type, current, status, preconditions)),
    )
  }

  async delete<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    preconditions: Preconditions,
  ): Promise<void> {
    await this.#timed('delete', () =>
      this.#change(type, key, (current, now) =>
        deletedObject(type, current, preconditions, this.#options.clientName, now),
      ),
    )
  }

  /** Drops changes older than a retention from the log now, beside what happens by itself; answers how many. */
  async compact(retention: Retention): Promise<number> {
    return compact(this.#pool, retention)
  }

  /** Ends watches (with `Unavailable`), loops and connections; waits for calls under way. Harmless when repeated. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#closed.abort()
    await Promise.all([this.#compactor.stop(), this.#listener.stop()])
    await this.#pool.end()
  }

  /** Locks the object, lets `judge` say what becomes of it, writes that; answers the object as it then is. */
  async #change<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    judge: (current: R, now: Date) => Change<R> | undefined,
  ): Promise<R> {
    let answer: R | undefined
    const written = await this.#pool.readJudgeWrite<ObjectRow & { now: Date }, { version: string }>(
      {
        name: 'lock',
        text: `select ${OBJECT_COLUMNS}, date_trunc('milliseconds', clock_timestamp()) as now
               from objects where resource = $1 and namespace = $2 and name = $3 for update`,
        values: [resourceOf(type), key.namespace, key.name],
      },
      row => {
        if (row === undefined)
          throw new StoreError('NotFound', `${type.kind} ${key.namespace}/${key.name} does not exist`)
        const current = resourceFromRow(type, row)
        const change = judge(current, row.now)
        answer = change?.next ?? current
        return change === undefined ? undefined : changeStatement(change)
      },
    )
    if (answer === undefined) throw new Error('A change was neither refused nor judged')
    if (written === undefined) return answer
    return { ...answer, metadata: { ...answer.metadata, resourceVersion: written.version } }
  }

  async #timed<T>(operation: string, call: () => Promise<T>): Promise<T> {
    const start = performance.now()
    let outcome = 'ok'
    try {
      return await call()
    } catch (error) {
      outcome = isStoreError(error) ? error.reason : 'error'
      throw error
    } finally {
      this.#metrics.requested(operation, outcome, (performance.now() - start) / 1000)
    }
  }
}

const changeStatement = ({ next: { metadata }, body, remove }: Change<Resource>): Statement => ({
  name: 'change',
  text: 'select change_object($1, $2, $3, $4, $5, $6) as version',
  values: [
    metadata.uid,
    metadata.generation,
    metadata.deletionTimestamp ?? null,
    JSON.stringify(metadata.labels),
    body,
    remove,
  ],
})
