/** The words of an operation: what was asked for, how far it got, and when it is done. */
import type { Phase } from './environment.ts'

export const OPERATION_KINDS = [
  'create_environment',
  'delete_environment',
  'suspend_environment',
  'resume_environment',
  'rotate_credentials',
  'run_migrations',
  'import',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

/** pending (queued) -> running -> succeeded | failed. The last two are terminal and never change. */
export const OPERATION_STATES = ['pending', 'running', 'succeeded', 'failed'] as const
export type OperationState = (typeof OPERATION_STATES)[number]

/** The verbs that a resource's `spec.request` can carry: one per asynchronous environment operation. */
export const REQUEST_VERBS = ['create', 'suspend', 'resume', 'rotate', 'delete'] as const
export type RequestVerb = (typeof REQUEST_VERBS)[number]

/** The operation that a request of each verb carries. */
export const OPERATION_OF: Readonly<Record<RequestVerb, OperationKind>> = {
  create: 'create_environment',
  suspend: 'suspend_environment',
  resume: 'resume_environment',
  rotate: 'rotate_credentials',
  delete: 'delete_environment',
}

/** What the operator reports about the request in `spec.request`, mirrored from `status.operation`. */
export interface ReportedOperation {
  readonly id: string
  readonly seq: number
  readonly outcome: 'running' | 'succeeded' | 'failed'
  readonly attempts: number
  readonly message?: string | undefined
}

/** What is known of an open operation when it is judged. */
export interface OperationView {
  readonly id: string
  readonly kind: OperationKind
  readonly seq: number
  /** Its intent was carried to the resource store, or may have been. */
  readonly dispatched: boolean
  /** Its deadline has passed, by the database's clock. */
  readonly overdue: boolean
}

/**
 * What the projector sees of the operation's environment. `gone`: a DeletionRecord of its uid, or nothing of that uid is
 * there. Before a create was dispatched nothing is there either; that is not gone.
 */
export interface EnvironmentView {
  readonly gone: boolean
  readonly phase?: Phase | undefined
  /** Deletion has begun: `metadata.deletionTimestamp` is set. */
  readonly deleting?: boolean | undefined
  /** `spec.request`. */
  readonly requestId?: string | undefined
  readonly requestSeq?: number | undefined
  /** `spec.suspended`. */
  readonly suspendedWanted?: boolean | undefined
  /** `status.operation`. */
  readonly reported?: ReportedOperation | undefined
}

/** How an open operation stands; `error` is the human-readable reason of a failure. */
export type Judgement =
  | { readonly state: 'pending' | 'running'; readonly attempts?: number }
  | { readonly state: 'succeeded'; readonly attempts?: number }
  | { readonly state: 'failed'; readonly error: string; readonly attempts?: number }

/** Why an operation ended that something later made unreachable. */
export const OVERTAKEN = 'Overtaken by a later change'
/** Why an operation ended that a deletion replaced. */
export const SUPERSEDED = 'Superseded by deletion'
/** Why an operation ended whose environment is no longer there. */
export const ENVIRONMENT_GONE = 'environment_gone: the environment is no longer there'

const OUTLOOK: Readonly<Record<OperationKind, string>> = {
  create_environment: 'the environment may still become ready',
  delete_environment: 'the environment may still be deleted',
  suspend_environment: 'the environment may still be suspended',
  resume_environment: 'the environment may still become ready',
  rotate_credentials: 'the passwords may still change',
  run_migrations: 'the migrations may still be applied',
  import: 'the import may still finish',
}

/** Why an operation ended that took too long: it is never judged again, but the operator goes on. */
export const deadlineExceeded = (kind: OperationKind): string => `deadline_exceeded: ${OUTLOOK[kind]}`

/** Whether somebody outside changed the environment so that the operation can no longer reach its goal. */
const isOvertaken = (operation: OperationView, environment: EnvironmentView): boolean => {
  const { id, kind, seq } = operation
  if (kind === 'delete_environment') return false // a deletion that began, by whomever, is what it asks for
  if (environment.deleting === true || environment.phase === 'deleting') return true
  if (environment.requestId !== id) return (environment.requestSeq ?? 0) >= seq
  return environment.suspendedWanted === true ? kind !== 'suspend_environment' : kind === 'suspend_environment'
}

/**
 * Judges an open operation by what is seen of its environment. The order of the questions is the rule:
 * gone, else an outcome reported for this very id, else overtaken, else overdue, else under way.
 *
 * - An outcome counts although the environment was changed since: the goal was reached, or missed, when it was reported.
 * - A deletion has succeeded when the environment is gone and not before, whatever its status says.
 * - An outcome that arrives together with the deadline wins over it.
 * - Synchronous kinds (migrations, imports) are ended by whoever runs them; here they can only lose their environment.
 */
export const judgeOperation = (operation: OperationView, environment: EnvironmentView): Judgement => {
  const { id, kind, dispatched } = operation
  const isDelete = kind === 'delete_environment'
  const report = environment.reported?.id === id ? environment.reported : undefined
  const attempts = report === undefined ? {} : { attempts: report.attempts }

  if (environment.gone && (dispatched || kind !== 'create_environment'))
    return isDelete ? { state: 'succeeded', ...attempts } : { state: 'failed', error: ENVIRONMENT_GONE, ...attempts }
  if (report?.outcome === 'failed')
    return { state: 'failed', error: report.message ?? 'The operator gave no reason', ...attempts }
  if (report?.outcome === 'succeeded' && !isDelete) return { state: 'succeeded', ...attempts }
  if (kind === 'run_migrations' || kind === 'import') return { state: 'running' }
  if (dispatched && isOvertaken(operation, environment)) return { state: 'failed', error: OVERTAKEN, ...attempts }
  if (operation.overdue) return { state: 'failed', error: deadlineExceeded(kind), ...attempts }
  const underWay = environment.requestId === id || (isDelete && environment.deleting === true)
  return { state: underWay ? 'running' : 'pending', ...attempts }
}
