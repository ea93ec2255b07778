/** What every part of the projector works with. */
import type { DeletionRecord } from '../../crds/deletion-record.ts'
import type { Environment } from '../../crds/environment.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import type { FencedTransactions } from '../store/fenced-transactions.ts'
import type { Sql } from '../store/sql.ts'
import type { ProjectionMetrics } from './metrics.ts'

/** A place to read resources from without a round trip. */
export interface ResourceView<R> {
  get(key: ResourceKey): R | undefined
}

export interface Projection {
  readonly store: ResourceStore
  readonly environments: ResourceView<Environment>
  readonly deletionRecords: ResourceView<DeletionRecord>
  readonly fenced: FencedTransactions
  /** For reads outside a transaction. */
  readonly sql: Sql
  /** Whether this process may write to the store right now. */
  readonly leads: () => boolean
  /** Where the operator leaves DeletionRecords. */
  readonly operatorNamespace: string
  /** Our own name as a client of the store. */
  readonly clientName: string
  readonly metrics: ProjectionMetrics
  readonly log: Log
}
