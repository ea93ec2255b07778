/** The second half of a renewal, for its own call and for whoever finds that its process died in between. */
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { insertAuditEvent } from '../store/audit.ts'
import {
  type EnvironmentRow,
  findEnvironmentById,
  lockEnvironmentById,
  setRenewedExpiry,
} from '../store/environments.ts'
import type { ControlPlaneSql } from '../store/fenced-transactions.ts'
import { abandonRenewal, applyRenewal, listStaleRenewals, type RenewalRow } from '../store/renewals.ts'
import type { Sql } from '../store/sql.ts'
import { environmentResource } from './call-events.ts'

/** After so long nobody is working on a renewal any more: every step of it has a deadline, and all together take less. */
const STALE_SECONDS = 60

/**
 * Records a renewal that the store holds: row, state and audit event, once however often it is called.
 * `generation` is that of the resource with it, or a later one.
 */
export const settleRenewal = async (sql: Sql, renewal: RenewalRow, generation: number): Promise<void> => {
  // The row first, as everywhere: the audit event's lock is the last one taken.
  const environment = await lockEnvironmentById(sql, renewal.environmentRow)
  if (environment === undefined || (await applyRenewal(sql, renewal.id)) === undefined) return
  await setRenewedExpiry(sql, renewal, generation)
  await insertAuditEvent(sql, {
    ...environmentResource(environment),
    actor: renewal.actor,
    action: 'renew_environment',
    metadata: { ...renewal.metadata, expires_at: renewal.expiresAt.toISOString() },
  })
}

/**
 * Settles renewals whose process died: applied where the store shows their expiry, else abandoned. Safe anywhere and at
 * any time; called by the projector.
 * @throws StoreError, DomainError when a look or a write fails; the rest is tried again by the next call
 */
export const finishStaleRenewals = async ({
  database,
  store,
  olderThanSeconds = STALE_SECONDS,
}: {
  readonly database: ControlPlaneSql
  readonly store: ResourceStore
  readonly olderThanSeconds?: number
}): Promise<void> => {
  for (const renewal of await listStaleRenewals(database, olderThanSeconds)) {
    const environment = await findEnvironmentById(database, renewal.environmentRow)
    const generation = environment && (await generationWith(store, environment, renewal))
    await database.transaction(sql =>
      generation === undefined ? abandonRenewal(sql, renewal.id) : settleRenewal(sql, renewal, generation),
    )
  }
}

/** The resource's generation if it shows this very renewal. */
const generationWith = async (
  store: ResourceStore,
  { namespace, resourceName, uid }: EnvironmentRow,
  renewal: RenewalRow,
): Promise<number | undefined> => {
  const resource = await store.get(environmentType, { namespace, name: resourceName })
  if (resource === undefined || resource.metadata.uid !== uid) return undefined
  const isShown = resource.spec.expiresAt === renewal.expiresAt.toISOString()
  return isShown ? resource.metadata.generation : undefined
}
