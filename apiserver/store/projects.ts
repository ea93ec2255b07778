/** Projects. A deleted one keeps its row for the history of its environments; nothing here shows it any more. */
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface ProjectRow {
  readonly organizationId: string
  readonly projectId: string
  readonly region: string
  readonly postgresMajor: number
  /** What touches production needs an admin. */
  readonly protectProduction: boolean
  readonly namespace: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

const PROJECT = columns('p', [
  'organization_id',
  'project_id',
  'region',
  'postgres_major',
  'protect_production',
  'namespace',
  'created_at',
  'updated_at',
])
const THIS = 'p.organization_id = $1 and p.project_id = $2 and p.deleted_at is null'

const FIND = `select ${PROJECT} from projects p where ${THIS}`
export const findProject = (sql: Sql, organizationId: string, projectId: string): Promise<ProjectRow | undefined> =>
  sql.row<ProjectRow>(FIND, [organizationId, projectId])

const SHARE = `select ${PROJECT}, clock_timestamp()::timestamptz(3) as now from projects p where ${THIS} for key share`
/**
 * Keeps the project from being deleted until the transaction ends, as the foreign key of an environment does anyway; with
 * the time on the database's clock.
 */
export const shareProject = (
  sql: Sql,
  organizationId: string,
  projectId: string,
): Promise<(ProjectRow & { readonly now: Date }) | undefined> => sql.row(SHARE, [organizationId, projectId])

const LOCK = `select ${PROJECT} from projects p where ${THIS} for update`
/** Waits for everybody who shares the project, and keeps others out. */
export const lockProject = (sql: Sql, organizationId: string, projectId: string): Promise<ProjectRow | undefined> =>
  sql.row<ProjectRow>(LOCK, [organizationId, projectId])

/** A project as it is put. The namespace, once given, stays. */
export type PutProject = Omit<ProjectRow, 'createdAt' | 'updatedAt'>

const valuesOf = (project: PutProject): readonly unknown[] => [
  project.organizationId,
  project.projectId,
  project.region,
  project.postgresMajor,
  project.protectProduction,
  project.namespace,
]

const INSERT = `insert into projects as p (organization_id, project_id, region, postgres_major, protect_production, namespace)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (organization_id, project_id) do update set region = excluded.region,
    postgres_major = excluded.postgres_major, protect_production = excluded.protect_production, updated_at = now(),
    created_at = now(), deleted_at = null, remove_namespace = false
  where p.deleted_at is not null returning ${PROJECT}`
/** Creates a project, or brings a deleted one back as new. Undefined: there is one by now, which nobody has judged. */
export const insertProject = (sql: Sql, project: PutProject): Promise<ProjectRow | undefined> =>
  sql.row<ProjectRow>(INSERT, valuesOf(project))

const UPDATE = `update projects as p set region = $3, postgres_major = $4, protect_production = $5, updated_at = now()
  where ${THIS} returning ${PROJECT}`
/** Updates a project that is locked. */
export const updateProject = (sql: Sql, project: PutProject): Promise<ProjectRow | undefined> =>
  sql.row<ProjectRow>(UPDATE, valuesOf(project).slice(0, 5))

const DELETE = `with forgotten as (
    update environments set replaced_at = now()
    where organization_id = $1 and project_id = $2 and replaced_at is null returning 1)
  update projects set deleted_at = now(), remove_namespace = true where organization_id = $1 and project_id = $2`
/** Deletes a project whose environments are all deleted; their records go out of sight with it. */
export const deleteProject = async (sql: Sql, organizationId: string, projectId: string): Promise<void> => {
  await sql.rows(DELETE, [organizationId, projectId])
}

/** A deleted project whose namespace is still to be removed. */
export type LeavingProject = Pick<ProjectRow, 'organizationId' | 'projectId' | 'namespace'>

const LEAVING = `select organization_id as "organizationId", project_id as "projectId", namespace from projects
  where remove_namespace and deleted_at is not null and namespace <> all($1::text[])
  order by deleted_at limit 1 for update skip locked`
/** The next one, but for these namespaces; locked: whoever puts that project again waits. */
export const lockLeavingProject = (sql: Sql, except: readonly string[]): Promise<LeavingProject | undefined> =>
  sql.row<LeavingProject>(LEAVING, [except])

const SETTLED = 'update projects set remove_namespace = false where organization_id = $1 and project_id = $2'
/** Its namespace is gone, or stays for good. */
export const markNamespaceSettled = async (sql: Sql, organizationId: string, projectId: string): Promise<void> => {
  await sql.rows(SETTLED, [organizationId, projectId])
}

const LIST = `select ${PROJECT} from projects p where p.organization_id = $1 and p.deleted_at is null
    and ($2::timestamptz is null or (p.created_at, p.project_id) > ($2, $3))
  order by p.created_at, p.project_id limit $4`
/** The projects of an organization, oldest first. */
export const listProjects = async (
  sql: Sql,
  organizationId: string,
  request: PageRequest,
): Promise<Page<ProjectRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<ProjectRow>(LIST, [organizationId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, row => ({ createdAt: row.createdAt, id: row.projectId }))
}

const COUNT = 'select count(*) as n from projects where organization_id = $1 and deleted_at is null'
export const countProjects = async (sql: Sql, organizationId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT, [organizationId]))?.n ?? 0
