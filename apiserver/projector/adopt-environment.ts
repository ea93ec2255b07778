/** Takes in an Environment that somebody made in the store (`kubectl apply`), where its project is ours. */
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { defaultDataMode, defaultDeletionPolicy, POSTGRES_MAJOR } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { keyOf } from '../../lib/model/resource.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { clientActor, recordExternalChange } from '../commands/record-external-change.ts'
import { bindAdopted, isOperation, writeFoldedColumns } from '../store/environment-folds.ts'
import { insertEnvironment, lockEnvironment, type NewEnvironment } from '../store/environments.ts'
import { type ProjectRow, shareProject } from '../store/projects.ts'
import type { Sql } from '../store/sql.ts'
import type { Projection } from './projection.ts'

/**
 * adopted: it has a row now. stray: our own create, which came too late. alone: no project of ours has this namespace.
 * later: something stands in the way for now, and whoever moves that looks again.
 */
type Adoption = 'adopted' | 'stray' | 'alone' | 'later'

/**
 * Adopts a resource that no row is bound to.
 * @returns whether it is left alone, until a project of ours has its namespace
 */
export const adoptEnvironment = async (
  path: EnvironmentPath,
  resource: Environment,
  projection: Projection,
): Promise<boolean> => {
  const { uid, deletionTimestamp } = resource.metadata
  if (deletionTimestamp !== undefined) return false
  const adoption = await projection.fenced(sql => adopt(sql, path, resource, projection.clientName))
  if (adoption === 'adopted') projection.metrics.externalChange('created')
  if (adoption !== 'stray' || !projection.leads()) return adoption === 'alone'
  projection.log.warn({ ...keyOf(resource), uid }, 'Deletes a resource that our create made too late')
  try {
    await projection.store.delete(environmentType, keyOf(resource), { uid })
  } catch (error) {
    if (!isStoreError(error, 'NotFound')) throw error
  }
  return false
}

const adopt = async (sql: Sql, path: EnvironmentPath, resource: Environment, clientName: string): Promise<Adoption> => {
  const { uid, namespace, generation, lastManager } = resource.metadata
  const { request } = resource.spec
  const row = await lockEnvironment(sql, path)
  if (row !== undefined && row.phase !== 'deleted') return 'later'
  // Never somebody's copy that was applied anew: then they would be the last manager.
  if (lastManager === clientName && request !== undefined && (await isOperation(sql, request.id))) return 'stray'
  const project = await shareProject(sql, path.organizationId, path.projectId)
  if (project?.namespace !== namespace) return 'alone'
  const environment = rowOf(path, resource, project)
  const { id } = await insertEnvironment(sql, environment)
  await bindAdopted(sql, id, uid, request?.seq ?? 0)
  await writeFoldedColumns(sql, id, {
    phase: resource.status?.phase ?? 'requested',
    status: resource.status ?? null,
    observedGeneration: generation,
    observedSpec: resource.spec,
    ttlHours: environment.ttlHours,
    expiresAt: environment.expiresAt,
    deletionProtection: environment.deletionProtection,
    deletionPolicy: environment.deletionPolicy,
  })
  await recordExternalChange(sql, {
    path,
    uid,
    generation,
    actor: clientActor(lastManager),
    action: 'create_environment',
    metadata: { environment_id: path.environmentId, kind: environment.kind, data_mode: environment.dataMode },
  })
  return 'adopted'
}

const rowOf = (
  path: EnvironmentPath,
  { metadata, spec, status }: Environment,
  project: ProjectRow,
): NewEnvironment => ({
  ...path,
  kind: spec.kind,
  dataMode: spec.dataMode ?? defaultDataMode(spec.kind),
  region: spec.region ?? project.region,
  postgresMajor: spec.postgresMajor ?? POSTGRES_MAJOR,
  ttlHours: spec.ttlHours ?? null,
  expiresAt: expiryOf(spec, status?.expiresAt),
  deletionProtection: spec.deletionProtection === true,
  deletionPolicy: spec.deletionPolicy ?? defaultDeletionPolicy(spec.kind),
  sourceEnvironmentId: spec.sourceEnvironmentId ?? null,
  namespace: metadata.namespace,
  resourceName: metadata.name,
})

const expiryOf = (spec: EnvironmentSpec, inForce: string | undefined): Date | null => {
  const expiresAt = spec.expiresAt ?? inForce
  return expiresAt === undefined ? null : new Date(expiresAt)
}
