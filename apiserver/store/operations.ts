/** Operations: what was asked for and how far it got. A terminal one never changes: every write here demands an open one. */
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationKind, OperationState } from '../../lib/model/operation.ts'
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface OperationRow extends EnvironmentPath {
  readonly id: string
  readonly kind: OperationKind
  readonly state: OperationState
  /** The incarnation it is about. */
  readonly environmentRow: string
  readonly seq: number
  readonly actor: string
  readonly requestId: string
  readonly attemptCount: number
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: string | null
  readonly deadlineAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** The select list of `operations o`, for statements that write one. */
export const OPERATION = columns('o', [
  'id',
  'kind',
  'state',
  'organization_id',
  'project_id',
  'environment_id',
  'environment_row',
  'seq',
  'actor',
  'request_id',
  'attempt_count',
  'result',
  'error',
  'deadline_at',
  'created_at',
  'updated_at',
])
const OPEN = "o.state in ('pending', 'running')"

const FIND = `select ${OPERATION} from operations o where o.id = $1 and o.organization_id = $2`
/** An operation of an organization. */
export const findOperation = (sql: Sql, organizationId: string, id: string): Promise<OperationRow | undefined> =>
  sql.row<OperationRow>(FIND, [id, organizationId])

const FIND_OPEN = `select ${OPERATION} from operations o where o.environment_row = $1 and ${OPEN}`
/** The one open operation of an environment, if any. */
export const findOpenOperation = (sql: Sql, environmentRow: string): Promise<OperationRow | undefined> =>
  sql.row<OperationRow>(FIND_OPEN, [environmentRow])

const FIND_OPEN_AT = `select ${OPERATION} from operations o where ${OPEN} and o.environment_row = (
  select e.id from environments e
  where e.organization_id = $1 and e.project_id = $2 and e.environment_id = $3 and e.replaced_at is null)`
/** The same by the environment's path, so that it can be sent along with whatever finds or locks the environment. */
export const findOpenOperationAt = (sql: Sql, path: EnvironmentPath): Promise<OperationRow | undefined> =>
  sql.row<OperationRow>(FIND_OPEN_AT, [path.organizationId, path.projectId, path.environmentId])

// A project that was made again begins anew: what was before is out of sight with its former life.
const LIST = `select ${OPERATION} from operations o
  join projects p on p.organization_id = o.organization_id and p.project_id = o.project_id and p.deleted_at is null
  where o.organization_id = $1 and o.project_id = $2 and o.environment_id = $3 and o.created_at >= p.created_at
    and ($4::timestamptz is null or (o.created_at, o.id) < ($4, $5))
  order by o.created_at desc, o.id desc limit $6`
/** The operations of every environment that had this path, newest first. */
export const listOperations = async (
  sql: Sql,
  path: EnvironmentPath,
  request: PageRequest,
): Promise<Page<OperationRow>> => {
  const after = decodeCursor(request.after)
  const { organizationId, projectId, environmentId } = path
  const values = [organizationId, projectId, environmentId, after?.createdAt, after?.id, request.limit + 1]
  return toPage(await sql.rows<OperationRow>(LIST, values), request.limit, row => row)
}

/** What becomes of an open operation. Absent fields stay. */
export interface OperationProgress {
  readonly state: OperationState
  readonly attempts?: number | undefined
  readonly result?: Readonly<Record<string, unknown>> | undefined
  /** With `failed`, and only then. */
  readonly error?: string | undefined
}

const MOVE = `update operations as o set state = $2, attempt_count = greatest(o.attempt_count, coalesce($3, 0)),
    result = coalesce($4::jsonb, o.result), error = $5, updated_at = now()
  where o.id = $1 and ${OPEN}
    and (o.state, o.attempt_count, o.error) is distinct from ($2, greatest(o.attempt_count, coalesce($3, 0)), $5)
  returning ${OPERATION}`
/** Moves an open operation on; undefined when it is over already, or nothing would change. */
export const moveOperation = (
  sql: Sql,
  id: string,
  { state, attempts, result, error }: OperationProgress,
): Promise<OperationRow | undefined> =>
  sql.row<OperationRow>(MOVE, [id, state, attempts, result === undefined ? null : JSON.stringify(result), error])

const END_OPEN = `update operations as o set state = 'failed', error = $2, updated_at = now()
  where o.environment_row = $1 and ${OPEN} returning ${OPERATION}`
/** Ends the open operation of an environment, if any, as failed. */
export const failOpenOperation = (sql: Sql, environmentRow: string, error: string): Promise<OperationRow | undefined> =>
  sql.row<OperationRow>(END_OPEN, [environmentRow, error])

const INSERT_DONE = `with numbered as (
    update environments set seq = seq + 1, updated_at = now() where id = $2
    returning id, organization_id, project_id, environment_id, seq)
  insert into operations as o (id, kind, state, organization_id, project_id, environment_id, environment_row, seq, actor,
    request_id, result)
  select $1, $3, 'succeeded', organization_id, project_id, environment_id, id, seq, $4, $5, $6::jsonb from numbered
  returning ${OPERATION}`
/** An operation that was over before it was recorded: a deletion that nobody asked the API for, or that had nothing to do. */
export const insertDoneOperation = async (
  sql: Sql,
  operation: Pick<OperationRow, 'id' | 'environmentRow' | 'kind' | 'actor' | 'requestId' | 'result'>,
): Promise<OperationRow> => {
  const { id, environmentRow, kind, actor, requestId, result } = operation
  const row = await sql.row<OperationRow>(INSERT_DONE, [
    id,
    environmentRow,
    kind,
    actor,
    requestId,
    JSON.stringify(result),
  ])
  if (row === undefined) throw new Error('An operation was not kept')
  return row
}
