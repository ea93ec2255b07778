/** How the request in `spec.request` stands. Once an outcome is reached it never changes. */
import type { EnvironmentSpec, EnvironmentStatus } from '../../crds/environment.ts'
import type { Phase } from '../../lib/model/environment.ts'
import { OVERTAKEN, SUPERSEDED } from '../../lib/model/operation.ts'

export type OperationStatus = NonNullable<EnvironmentStatus['operation']>

/** What decides about a request. */
export interface Progress {
  readonly phase: Phase
  readonly wantedSuspended: boolean
  /** All checks of the goal are satisfied. */
  readonly satisfied: boolean
  /** Why no further attempt is made without a change. */
  readonly stalled: string | undefined
  /** What is in the way. */
  readonly trouble: string | undefined
  /** A failed environment is tried again just now. */
  readonly retrying: boolean
}

type Outcome = Pick<OperationStatus, 'outcome'> & { readonly message?: string | undefined }

/** The operation's next report; the one before is kept where nothing was asked for. */
export const operationOf = (
  request: EnvironmentSpec['request'],
  before: OperationStatus | undefined,
  progress: Progress,
): OperationStatus | undefined => {
  if (request === undefined) return before
  const known = before?.id === request.id ? before : undefined
  if (known !== undefined && known.outcome !== 'running') return known
  const attempts = (known?.attempts ?? 1) + (known !== undefined && progress.retrying ? 1 : 0)
  const { outcome, message } = outcomeOf(request.verb, progress)
  return { id: request.id, seq: request.seq, outcome, attempts, ...(message === undefined ? {} : { message }) }
}

const outcomeOf = (verb: NonNullable<EnvironmentSpec['request']>['verb'], progress: Progress): Outcome => {
  const { phase, wantedSuspended, satisfied, stalled, trouble } = progress
  const running: Outcome = { outcome: 'running', message: trouble }
  if (verb === 'delete') return phase === 'deleting' ? running : { outcome: 'running' }
  if (phase === 'deleting') return { outcome: 'failed', message: SUPERSEDED }
  const goal = verb === 'suspend' ? 'suspended' : 'ready'
  if (phase === goal && (satisfied || verb === 'create')) return { outcome: 'succeeded' }
  // A create may find suspension wanted from the start: it is done once it was ready on the way there.
  const unreachable =
    verb === 'create' ? phase === 'suspended' && wantedSuspended : wantedSuspended !== (verb === 'suspend')
  if (unreachable) return { outcome: 'failed', message: OVERTAKEN }
  return stalled === undefined ? running : { outcome: 'failed', message: stalled }
}
