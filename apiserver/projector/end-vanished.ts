import { deletionRecordName } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { type EnvironmentRow, lockEnvironmentById } from '../store/environments.ts'
import { findOpenOperation } from '../store/operations.ts'
import { finishDeletion } from './finish-deletion.ts'
import { foldDeletionRecord } from './fold-deletion-record.ts'
import type { Projection } from './projection.ts'

/**
 * Ends a row whose resource is not in the store any more. Its DeletionRecord was written before it went, so the store is
 * asked for that; where there is none, finalizer and operator were got around, and nobody knows what became of the data.
 */
export const endVanished = async ({ id, uid }: EnvironmentRow, projection: Projection): Promise<void> => {
  if (uid === null) return
  const name = deletionRecordName(uid)
  const record = await projection.store.get(deletionRecordType, { namespace: projection.operatorNamespace, name })
  if (record !== undefined) {
    await foldDeletionRecord(record, projection)
    return
  }
  await projection.fenced(async sql => {
    const row = await lockEnvironmentById(sql, id)
    if (row?.uid !== uid || row.phase === 'deleted') return
    const open = await findOpenOperation(sql, id)
    const wasAsked = open?.kind === 'delete_environment' && open.state === 'running'
    const cause = wasAsked ? `request:${open.id}` : 'external'
    const deletion = { uid, cause, manager: undefined, deletedAt: new Date(), data: undefined }
    const isExternal = await finishDeletion(sql, row, deletion, projection.log)
    if (isExternal) projection.metrics.externalChange('deleted')
    projection.log.warn({ uid, ...pathIn(row), wasAsked }, 'An environment vanished without a DeletionRecord')
  })
}

const pathIn = ({ organizationId, projectId, environmentId }: EnvironmentRow): Readonly<Record<string, string>> => ({
  organizationId,
  projectId,
  environmentId,
})
