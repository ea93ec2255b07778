/**
 * Brings the rows of one resource name up to what is there: folds it, adopts it, or ends the row whose resource is gone.
 * Says nothing from absence alone: what the cache does not hold is asked of the store before a row is ended for it.
 */
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { type EnvironmentPath, ID_PATTERN } from '../../lib/model/identifiers.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import { clientActor, recordExternalChange } from '../commands/record-external-change.ts'
import { bindOwnCreation, markFolded, readUnderWay, writeFoldedColumns } from '../store/environment-folds.ts'
import { type EnvironmentRow, findEnvironment, lockEnvironmentByUid } from '../store/environments.ts'
import type { Sql } from '../store/sql.ts'
import { adoptEnvironment } from './adopt-environment.ts'
import { endVanished } from './end-vanished.ts'
import { foldEnvironment, phaseOf } from './fold-environment.ts'
import { moveByJudgement } from './move-by-judgement.ts'
import type { Projection } from './projection.ts'

/** The path in a resource name; undefined when it is none of ours. */
const pathOf = ({ name }: ResourceKey): EnvironmentPath | undefined => {
  const [organizationId, projectId, environmentId, ...rest] = name.split('.')
  const ids = [organizationId, projectId, environmentId]
  if (rest.length > 0 || !ids.every(id => id !== undefined && ID_PATTERN.test(id))) return undefined
  return { organizationId, projectId, environmentId } as EnvironmentPath
}

/**
 * Looks at one name. Idempotent; may be called at any time for any name.
 * @returns whether a resource is there that is left alone, until a project of ours has its namespace
 */
export const projectEnvironment = async (key: ResourceKey, projection: Projection): Promise<boolean> => {
  const path = pathOf(key)
  if (path === undefined) return false
  const cached = projection.environments.get(key)
  if (cached !== undefined && (await foldKnown(cached, projection))) return false
  const row = await findEnvironment(projection.sql, path)
  const isOurs = row?.namespace === key.namespace && row.uid !== null && row.phase !== 'deleted'
  if (cached === undefined && !isOurs) return false
  // Here the cache and the rows disagree, so the store decides.
  const current = await projection.store.get(environmentType, key)
  if (row !== undefined && isOurs && current?.metadata.uid !== row.uid) await endVanished(row, projection)
  if (current === undefined || (await foldKnown(current, projection))) return false
  return adoptEnvironment(path, current, projection)
}

/** Folds a resource whose row we have. false: we know of none. */
const foldKnown = (resource: Environment, projection: Projection): Promise<boolean> =>
  projection.fenced(async sql => {
    const row =
      (await lockEnvironmentByUid(sql, resource.metadata.uid)) ??
      (await bindOwnCreation(sql, resource.metadata.uid, resource.spec.request?.id))
    if (row === undefined) return false
    // Its DeletionRecord was folded before its last finalizer went: that was the last word.
    if (row.phase !== 'deleted') await fold(sql, row, resource, projection)
    return true
  })

const fold = async (
  sql: Sql,
  row: EnvironmentRow,
  resource: Environment,
  { clientName, metrics, log }: Projection,
): Promise<void> => {
  const underWay = await readUnderWay(sql, row.id, resource.spec.request?.id)
  const found = foldEnvironment({ row, resource, underWay, clientName, prune: environmentType.prune })
  if (found.columns !== undefined) await writeFoldedColumns(sql, row.id, found.columns)
  await markFolded(sql, found.foldedIntents)
  if (found.judgement !== undefined && underWay.operation !== null)
    await moveByJudgement(sql, underWay.operation, found.judgement, row, phaseOf(resource), log)
  if (found.external === undefined) return
  const { generation, fields, manager } = found.external
  const isNew = await recordExternalChange(sql, {
    path: row,
    uid: resource.metadata.uid,
    generation: generation.to,
    actor: clientActor(manager),
    action: 'external_change',
    metadata: { generation, fields },
  })
  if (isNew) metrics.externalChange('changed')
}
