/** Where a scenario plays: the same scenario runs on the single box and on a cluster. */
import { randomBytes } from 'node:crypto'
import type { ResourceKey } from '../lib/model/resource.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import type { OpenSql } from '../testkit/open-sql.ts'
import type { ApiClient } from './api-client.ts'

export interface World {
  /** An operator's client: may make organizations. */
  readonly api: ApiClient
  readonly openSql: OpenSql
  /** The resource store, as somebody outside the API would use it. */
  readonly store: ResourceStore
  /** Whether data that a deletion kept is still where the operation said. */
  isKept(place: string): Promise<boolean>
  /** Kills an environment's Postgres and takes away what it needs to start; answers how to give that back. */
  breakPostgres(key: ResourceKey): Promise<() => Promise<void>>
}

let serial = 0

/** An id that no other scenario uses. */
export const freshId = (prefix: string): string =>
  `${prefix}-${(++serial).toString(36)}${randomBytes(3).toString('hex')}`
