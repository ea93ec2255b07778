/** The words of an operation: what was asked for, how far it got, and when it is done. */
import type { Phase } from './environment.ts'

export const OPERATION_KINDS = [
  'create_environment',
  'delete_environment',
  'suspend_environment',
  'resume_environment',
  'run_migrations',
  'import',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

/** pending (queued) -> running -> succeeded | failed. The last two are terminal and never change. */
export const OPERATION_STATES = ['pending', 'running', 'succeeded', 'failed'] as const
export type OperationState = (typeof OPERATION_STATES)[number]

export const isTerminal = (state: OperationState): boolean => state === 'succeeded' || state === 'failed'

/** The verbs that a resource's `spec.request` can carry: one per asynchronous environment operation. */
export const REQUEST_VERBS = ['create', 'suspend', 'resume', 'delete'] as const
export type RequestVerb = (typeof REQUEST_VERBS)[number]

/** What the operator reports about the request in `spec.request`, mirrored from `status.operation`. */
export interface ReportedOperation {
  readonly id: string
  readonly seq: number
  readonly outcome: 'running' | 'succeeded' | 'failed'
  readonly attempts: number
  readonly message?: string | undefined
}

/** What the projector sees of an environment when it judges an open operation. `gone` means a DeletionRecord or nothing is there. */
export interface OperationView {
  readonly id: string
  readonly kind: OperationKind
  readonly seq: number
}
export interface EnvironmentView {
  readonly gone: boolean
  readonly phase?: Phase | undefined
  readonly requestId?: string | undefined
  readonly requestSeq?: number | undefined
  readonly suspendedWanted?: boolean | undefined
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
