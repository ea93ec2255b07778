/** Turns a DeletionRecord into rows, once, and removes it. */
import type { DeletionRecord } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { TTL_ACTOR } from '../../lib/model/audit.ts'
import { keyOf, type ResourceKey } from '../../lib/model/resource.ts'
import type { ReconcileResult } from '../../runtime/controller/controller.ts'
import type { Log } from '../../runtime/log/log.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { clientActor, recordExternalChange } from '../commands/record-external-change.ts'
import { bindLostCreation } from '../store/environment-folds.ts'
import { lockEnvironmentByUid } from '../store/environments.ts'
import { findProject } from '../store/projects.ts'
import type { Sql } from '../store/sql.ts'
import { DELETION_GENERATION, finishDeletion } from './finish-deletion.ts'
import type { Projection } from './projection.ts'

/** The operator lets go right after it left its record. */
const HELD_LOOK_MS = 50

/**
 * Looks at one record's name. Idempotent. A record whose resource the operator still holds waits: whoever is told that an
 * environment is deleted finds nothing of that name, and may use it again. Other parties' finalizers are not waited for.
 */
export const projectDeletionRecord = async (
  key: ResourceKey,
  projection: Projection,
): Promise<ReconcileResult | undefined> => {
  const record = projection.deletionRecords.get(key)
  if (record === undefined) return undefined
  if (isHeld(record, projection)) return { requeueAfterMs: HELD_LOOK_MS }
  await foldDeletionRecord(record, projection)
  return undefined
}

const isHeld = ({ spec }: DeletionRecord, { environments }: Projection): boolean => {
  const resource = environments.get({ namespace: spec.namespace, name: spec.name })
  return resource?.metadata.uid === spec.uid && resource.metadata.finalizers.includes(ENVIRONMENT_FINALIZER)
}

/**
 * Ends the row that a record is about, then deletes the record. A crash in between repeats the second half only. A record
 * about no project of ours stays; the operator drops it some day.
 */
export const foldDeletionRecord = async (record: DeletionRecord, projection: Projection): Promise<void> => {
  const outcome = await projection.fenced(sql => endRow(sql, record, projection.log))
  if (outcome === 'external') projection.metrics.externalChange('deleted')
  if (outcome === 'foreign' || !projection.leads()) return
  try {
    await projection.store.delete(deletionRecordType, keyOf(record), { uid: record.metadata.uid })
  } catch (error) {
    if (!isStoreError(error, 'NotFound')) throw error
  }
}

const endRow = async (
  sql: Sql,
  { metadata, spec }: DeletionRecord,
  log: Log,
): Promise<'external' | 'asked' | 'known' | 'foreign'> => {
  const row = (await lockEnvironmentByUid(sql, spec.uid)) ?? (await bindLostCreation(sql, spec.uid, spec))
  if (row?.phase === 'deleted') return 'known'
  if (row !== undefined) {
    const deletion = {
      uid: spec.uid,
      cause: spec.cause,
      manager: spec.actor,
      deletedAt: momentOf(spec.deletedAt) ?? momentOf(metadata.creationTimestamp) ?? new Date(),
      data: spec,
    }
    const isExternal = await finishDeletion(sql, row, deletion, log)
    return isExternal ? 'external' : 'asked'
  }
  // Made and deleted while nobody looked: there is no row to end, but the deletion is told where there is a project.
  const project = await findProject(sql, spec.organizationId, spec.projectId)
  if (project?.namespace !== spec.namespace) return 'foreign'
  const isNew = await recordExternalChange(sql, {
    path: spec,
    uid: spec.uid,
    generation: DELETION_GENERATION,
    actor: spec.cause === 'ttl' ? TTL_ACTOR : clientActor(spec.actor),
    action: 'delete_environment',
    metadata: { environment_id: spec.environmentId, retained: spec.retained },
  })
  return isNew ? 'external' : 'known'
}

const momentOf = (text: string): Date | undefined => {
  const moment = new Date(text)
  return Number.isNaN(moment.getTime()) ? undefined : moment
}
