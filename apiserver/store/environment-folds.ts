/** What the projector reads and writes of an environment: its row, what is under way for it. All of it under the lease. */
import type { EnvironmentSpec, EnvironmentStatus } from '../../crds/environment.ts'
import type { DeletionPolicy, Phase } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationKind } from '../../lib/model/operation.ts'
import { type EnvironmentRow, lockEnvironmentById } from './environments.ts'
import type { IntentRow } from './intents.ts'
import type { Sql } from './sql.ts'

/** An intent whose effect was not folded yet. */
export interface UnfoldedIntent {
  readonly id: number
  readonly seq: number
  readonly verb: IntentRow['verb']
  readonly payload: Readonly<Record<string, unknown>>
  readonly state: 'pending' | 'dispatched'
  readonly attempts: number
  /** That of the resource with its effect. */
  readonly generation: number | null
  readonly operationId: string | null
}

/** The operation under way. */
export interface OpenOperation {
  readonly id: string
  readonly kind: OperationKind
  readonly state: 'pending' | 'running'
  readonly seq: number
  readonly attemptCount: number
  readonly overdue: boolean
}

/** Everything under way for an environment. */
export interface UnderWay {
  readonly intents: readonly UnfoldedIntent[]
  readonly operation: OpenOperation | null
  /** Whether the resource's request is an operation of this environment. */
  readonly requestIsOurs: boolean
}

/** What is under way for a row that is locked. `requestId` is that of the resource's spec. */
export const readUnderWay = async (sql: Sql, id: string, requestId: string | undefined): Promise<UnderWay> => {
  const found = await sql.row<UnderWay>(
    `select
       (select coalesce(jsonb_agg(jsonb_build_object('id', i.id, 'seq', i.seq, 'verb', i.verb, 'payload', i.payload,
          'state', i.state, 'attempts', i.attempts, 'generation', i.generation, 'operationId', i.operation_id)
          order by i.seq), '[]')
        from intents i where i.environment_row = $1 and not i.folded and i.state in ('pending', 'dispatched')) as intents,
       (select jsonb_build_object('id', o.id, 'kind', o.kind, 'state', o.state, 'seq', o.seq,
          'attemptCount', o.attempt_count, 'overdue', coalesce(o.deadline_at <= clock_timestamp(), false))
        from operations o where o.environment_row = $1 and o.state in ('pending', 'running')) as operation,
       exists (select from operations where id = $2 and environment_row = $1) as "requestIsOurs"`,
    [id, requestId ?? null],
  )
  if (found === undefined) throw new Error('A select without a from clause answers one row')
  return found
}

/** The columns that a fold sets. */
export interface FoldedColumns {
  readonly phase: Phase
  readonly status: EnvironmentStatus | null
  readonly observedGeneration: number
  readonly observedSpec: EnvironmentSpec
  readonly ttlHours: number | null
  readonly expiresAt: Date | null
  readonly deletionProtection: boolean
  readonly deletionPolicy: DeletionPolicy
}

/**
 * Writes what a fold found. `deleted` is final: a row that reached it stays. A resource may carry a later request than the rows
 * know, where they come from a backup: what is asked next goes on after it, for the store refuses numbers that do not rise.
 */
export const writeFoldedColumns = async (sql: Sql, id: string, columns: FoldedColumns): Promise<void> => {
  await sql.rows(
    `update environments set phase = $2, status = $3::jsonb, observed_generation = $4, observed_spec = $5::jsonb, ttl_hours = $6,
            expires_at = $7, deletion_protection = $8, deletion_policy = $9, updated_at = now(),
            seq = greatest(seq, coalesce(($5::jsonb #>> '{request,seq}')::bigint, 0))
      where id = $1 and phase <> 'deleted'`,
    [
      id,
      columns.phase,
      JSON.stringify(columns.status),
      columns.observedGeneration,
      JSON.stringify(columns.observedSpec),
      columns.ttlHours,
      columns.expiresAt,
      columns.deletionProtection,
      columns.deletionPolicy,
    ],
  )
}

/** Marks intents whose effect was seen, so that they explain no later change. */
export const markFolded = async (sql: Sql, intents: readonly number[]): Promise<void> => {
  if (intents.length > 0) await sql.rows(`update intents set folded = true where id = any($1::bigint[])`, [intents])
}

/** Rows that should have a resource: what a first list must be compared with. */
export const boundRows = (
  sql: Sql,
): Promise<readonly { readonly namespace: string; readonly resourceName: string }[]> =>
  sql.rows(
    `select namespace, resource_name as "resourceName" from environments where uid is not null and phase <> 'deleted'`,
  )

const STATUSES = `select uid, status from environments where uid is not null and phase <> 'deleted'`
/** The status that was folded last, by uid of the resource. */
export const statusesInRows = async (sql: Sql): Promise<ReadonlyMap<string, EnvironmentStatus | null>> => {
  const rows = await sql.rows<{ readonly uid: string; readonly status: EnvironmentStatus | null }>(STATUSES)
  return new Map(rows.map(({ uid, status }) => [uid, status]))
}

const OVERDUE = `select e.id as "environmentRow", e.namespace, e.resource_name as "resourceName"
  from operations o join environments e on e.id = o.environment_row
  where o.state in ('pending', 'running') and o.deadline_at <= clock_timestamp()
    and o.kind in ('create_environment', 'delete_environment', 'suspend_environment', 'resume_environment',
      'rotate_credentials')`
/** Environments with an operation that is not over although its deadline has passed. */
export const overdueEnvironments = (
  sql: Sql,
): Promise<readonly { readonly environmentRow: string; readonly namespace: string; readonly resourceName: string }[]> =>
  sql.rows(OVERDUE)

const IS_OPERATION_OF = 'select id from operations where id = $1 and environment_row = $2'
/** Whether an operation is about this environment: what a DeletionRecord's cause is checked against. */
export const isOperationOf = async (sql: Sql, id: string, environmentRow: string): Promise<boolean> =>
  (await sql.row(IS_OPERATION_OF, [id, environmentRow])) !== undefined

const BIND_CREATION = `update environments e set uid = $1 from intents c
  where c.environment_row = e.id and c.verb = 'create' and c.operation_id = $2 and e.uid is null and e.phase <> 'deleted'
  returning e.id`
/** The row whose create made this resource, bound to it and locked, when the dispatcher has not noted the uid yet. */
export const bindOwnCreation = async (
  sql: Sql,
  uid: string,
  requestId: string | undefined,
): Promise<EnvironmentRow | undefined> => {
  const bound = await sql.row<{ id: string }>(BIND_CREATION, [uid, requestId])
  return bound && lockEnvironmentById(sql, bound.id)
}

const BIND_LOST_CREATION = `update environments e set uid = $1
  where e.organization_id = $2 and e.project_id = $3 and e.environment_id = $4 and e.namespace = $5
    and e.replaced_at is null and e.uid is null and e.phase <> 'deleted'
    and exists (select from intents c where c.environment_row = e.id and c.verb = 'create' and c.state = 'pending'
                and c.attempts > 0)
  returning e.id`
/**
 * The row whose create was tried, but whose resource was deleted before anybody noted its uid. Names are unique, so while
 * the create was under way a resource of this name that is none of ours could only have been in its way.
 */
export const bindLostCreation = async (
  sql: Sql,
  uid: string,
  place: EnvironmentPath & { readonly namespace: string },
): Promise<EnvironmentRow | undefined> => {
  const { organizationId, projectId, environmentId, namespace } = place
  const bound = await sql.row<{ id: string }>(BIND_LOST_CREATION, [
    uid,
    organizationId,
    projectId,
    environmentId,
    namespace,
  ])
  return bound && lockEnvironmentById(sql, bound.id)
}

const ADOPT = `update environments set uid = $2, seq = $3 where id = $1`
/** Binds a new row to a resource that others made. Its numbers go on after the last request that the resource carries. */
export const bindAdopted = async (sql: Sql, id: string, uid: string, seq: number): Promise<void> => {
  await sql.rows(ADOPT, [id, uid, seq])
}

const IS_OPERATION = 'select id from operations where id = $1'
/** Whether an operation of ours has this id. */
export const isOperation = async (sql: Sql, id: string): Promise<boolean> =>
  (await sql.row(IS_OPERATION, [id])) !== undefined
