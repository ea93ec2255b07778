/**
 * Environments, one row an incarnation: an id used again gets a new row. Everything here is about the current one unless
 * it says otherwise. Writers beside the commands: dispatch records the uid, the projector what it observed.
 */
import { randomUUID } from 'node:crypto'
import type { EnvironmentSpec, EnvironmentStatus } from '../../crds/environment.ts'
import type { DataMode, DeletionPolicy, EnvironmentKind, Phase } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import { type Sql, together } from './sql.ts'

export interface EnvironmentRow extends EnvironmentPath {
  /** Names the incarnation. */
  readonly id: string
  readonly kind: EnvironmentKind
  readonly dataMode: DataMode
  readonly region: string
  readonly postgresMajor: number
  readonly ttlHours: number | null
  readonly expiresAt: Date | null
  readonly deletionProtection: boolean
  readonly deletionPolicy: DeletionPolicy
  readonly sourceEnvironmentId: string | null
  readonly namespace: string
  readonly resourceName: string
  /** Of the resource; null until its creation was recorded. */
  readonly uid: string | null
  readonly seq: number
  readonly phase: Phase
  readonly status: EnvironmentStatus | null
  readonly observedGeneration: number | null
  readonly observedSpec: EnvironmentSpec | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly deletedAt: Date | null
  /** A delete operation is open: nobody is shown an earlier phase any more. */
  readonly deleting: boolean
}

/** An environment whose row is locked, with what a command judges it by. */
export interface LockedEnvironment extends EnvironmentRow {
  readonly protectProduction: boolean
  /** The database's clock. */
  readonly now: Date
}

const COLUMNS = columns('e', [
  'id',
  'organization_id',
  'project_id',
  'environment_id',
  'kind',
  'data_mode',
  'region',
  'postgres_major',
  'ttl_hours',
  'expires_at',
  'deletion_protection',
  'deletion_policy',
  'source_environment_id',
  'namespace',
  'resource_name',
  'uid',
  'seq',
  'phase',
  'status',
  'observed_generation',
  'observed_spec',
  'created_at',
  'updated_at',
  'deleted_at',
])
const ENVIRONMENT = `${COLUMNS}, exists (select from operations o where o.environment_row = e.id
  and o.kind = 'delete_environment' and o.state in ('pending', 'running')) as deleting`
const LIVE_PROJECT = `join projects p on p.organization_id = e.organization_id and p.project_id = e.project_id
  and p.deleted_at is null`
const THIS = 'e.organization_id = $1 and e.project_id = $2 and e.environment_id = $3 and e.replaced_at is null'

const keyOf = (path: EnvironmentPath): readonly string[] => [path.organizationId, path.projectId, path.environmentId]

const FIND = `select ${ENVIRONMENT}, p.protect_production as "protectProduction" from environments e ${LIVE_PROJECT} where ${THIS}`
/** The environment of a path, also when it is deleted. */
export const findEnvironment = (
  sql: Sql,
  path: EnvironmentPath,
): Promise<(EnvironmentRow & { readonly protectProduction: boolean }) | undefined> => sql.row(FIND, keyOf(path))

const LOCK = `select ${ENVIRONMENT}, p.protect_production as "protectProduction", clock_timestamp()::timestamptz(3) as now
  from environments e ${LIVE_PROJECT} where ${THIS} for no key update of e`
/**
 * Locks the environment of a path. Commands take this lock first, so that of calls to one environment each sees what the
 * one before it left. `deleting` may be older than the lock: ask `findOpenOperation` after it.
 */
export const lockEnvironment = (sql: Sql, path: EnvironmentPath): Promise<LockedEnvironment | undefined> =>
  sql.row<LockedEnvironment>(LOCK, keyOf(path))

const LOCK_BY_ID = `select ${ENVIRONMENT} from environments e where e.id = $1 for no key update of e`
/** Locks any incarnation. */
export const lockEnvironmentById = (sql: Sql, id: string): Promise<EnvironmentRow | undefined> =>
  sql.row<EnvironmentRow>(LOCK_BY_ID, [id])

const LOCK_BY_UID = `select ${ENVIRONMENT} from environments e where e.uid = $1 for no key update of e`
/** Locks any incarnation, by the uid of its resource. */
export const lockEnvironmentByUid = (sql: Sql, uid: string): Promise<EnvironmentRow | undefined> =>
  sql.row<EnvironmentRow>(LOCK_BY_UID, [uid])

/** A new incarnation. */
export type NewEnvironment = Omit<
  EnvironmentRow,
  | 'id'
  | 'uid'
  | 'seq'
  | 'phase'
  | 'status'
  | 'observedGeneration'
  | 'observedSpec'
  | 'createdAt'
  | 'updatedAt'
  | 'deletedAt'
  | 'deleting'
>

const REPLACE_DELETED = `update environments e set replaced_at = now() where ${THIS} and e.phase = 'deleted'`
const INSERT = `insert into environments as e (organization_id, project_id, environment_id, kind, data_mode, region,
    postgres_major, ttl_hours, expires_at, deletion_protection, deletion_policy, source_environment_id, namespace, resource_name, id)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) returning ${COLUMNS}, false as deleting`
/**
 * Begins an incarnation; one that is deleted makes room for it. Give the `id` to send statements about it along.
 * @throws a unique violation of `environments_current` when there is one that is not deleted
 */
export const insertEnvironment = async (
  sql: Sql,
  environment: NewEnvironment,
  id: string = randomUUID(),
): Promise<EnvironmentRow> => {
  const replaced = sql.rows(REPLACE_DELETED, keyOf(environment))
  const inserted = sql.row<EnvironmentRow>(INSERT, [
    ...keyOf(environment),
    environment.kind,
    environment.dataMode,
    environment.region,
    environment.postgresMajor,
    environment.ttlHours,
    environment.expiresAt,
    environment.deletionProtection,
    environment.deletionPolicy,
    environment.sourceEnvironmentId,
    environment.namespace,
    environment.resourceName,
    id,
  ])
  const [, row] = await together(replaced, inserted)
  if (row === undefined) throw new Error('An environment was not kept')
  return row
}

const MARK_DELETED = `update environments set phase = 'deleted', deleted_at = $2, updated_at = now()
  where id = $1 and phase <> 'deleted'`
/** The end of an incarnation. */
export const markDeleted = async (sql: Sql, id: string, deletedAt: Date): Promise<void> => {
  await sql.rows(MARK_DELETED, [id, deletedAt])
}

const COUNT = `select count(*) filter (where project_id = $2) as "inProject", count(*) as "inOrganization"
  from environments where organization_id = $1 and replaced_at is null and phase <> 'deleted'`
/** How many environments there are that are not deleted. */
export const countEnvironments = async (
  sql: Sql,
  organizationId: string,
  projectId: string,
): Promise<{ readonly inProject: number; readonly inOrganization: number }> =>
  (await sql.row<{ inProject: number; inOrganization: number }>(COUNT, [organizationId, projectId])) ?? {
    inProject: 0,
    inOrganization: 0,
  }

const PRODUCTION = `select environment_id as "environmentId" from environments
  where organization_id = $1 and project_id = $2 and kind = 'production' and replaced_at is null and phase <> 'deleted'
  order by created_at, id limit 1`
/** The id of a project's production environment, the oldest where there are several: what clones come from by default. */
export const findProduction = async (
  sql: Sql,
  organizationId: string,
  projectId: string,
): Promise<string | undefined> =>
  (await sql.row<{ environmentId: string }>(PRODUCTION, [organizationId, projectId]))?.environmentId

const LIST = `select ${ENVIRONMENT} from environments e ${LIVE_PROJECT}
  where e.organization_id = $1 and ($2::text is null or e.project_id = $2) and e.replaced_at is null
    and e.phase <> 'deleted' and ($3::timestamptz is null or (e.created_at, e.id) > ($3, $4))
  order by e.created_at, e.id limit $5`
/** Environments of an organization or one of its projects, oldest first, without those that are deleted. */
export const listEnvironments = async (
  sql: Sql,
  organizationId: string,
  projectId: string | undefined,
  request: PageRequest,
): Promise<Page<EnvironmentRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<EnvironmentRow>(LIST, [
    organizationId,
    projectId,
    after?.createdAt,
    after?.id,
    request.limit + 1,
  ])
  return toPage(rows, request.limit, row => row)
}
