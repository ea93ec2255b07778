/** What to tell of a status write, and of an action that was done: pure. A status that did not change tells nothing. */
import { type Condition, type ConditionType, conditionOf } from '../../crds/conditions.ts'
import type { Environment } from '../../crds/environment.ts'
import type { Phase } from '../../lib/model/environment.ts'
import { WRITE_REFUSED } from '../host/refused-write.ts'
import type { Action } from './action.ts'
import { RESTART_DUE } from './checks/settings-applied.ts'
import type { StoryEvent } from './events.ts'
import { isRotationDue } from './rotation.ts'

/** Reason of the event that tells of it. */
export const DRIFT_CORRECTED = 'DriftCorrected'

const normal = (reason: string, message: string): StoryEvent => ({ type: 'Normal', reason, message })
const warning = (reason: string, message: string): StoryEvent => ({ type: 'Warning', reason, message })

/** Reasons that only name the work under way: the phase tells of it. */
const WORK: ReadonlySet<string> = new Set([
  ...['Provisioning', 'Updating', 'Resuming', 'Suspending', 'Suspended', 'Deleting'],
  ...['Retrying', 'Paused', 'NoData'],
])

/** Conditions whose being False is a fault. */
const HEALTH: readonly ConditionType[] = ['StorageReady', 'CredentialsReady', 'DatabaseReachable']
/** Conditions whose being True is news. */
const NEWS: readonly ConditionType[] = ['Stalled', 'UncleanStop', 'Expiring']

/** The events of one status write, in order: what went wrong, then what became of the environment. */
export const storyOf = (before: Environment, after: Environment): readonly StoryEvent[] => {
  const [from, to] = [before.status?.phase ?? 'requested', after.status?.phase ?? 'requested']
  const told = [
    ...faults(before, after),
    ...restart(before, after),
    ...(from === to ? progress(before, after) : phaseStory(from, to, conditionOf(after.status?.conditions, 'Ready'))),
    ...expired(before, after),
  ]
  // A fault shows in several conditions; it is told once.
  return told.filter((event, n) => told.findIndex(({ reason }) => reason === event.reason) === n)
}

const changedCondition = (type: ConditionType, before: Environment, after: Environment): Condition | undefined => {
  const [old, now] = [before, after].map(({ status }) => conditionOf(status?.conditions, type))
  return now !== undefined && (old?.status !== now.status || old.reason !== now.reason) ? now : undefined
}

const faults = (before: Environment, after: Environment): readonly StoryEvent[] => {
  const found: StoryEvent[] = []
  const look = (types: readonly ConditionType[], status: Condition['status']): void => {
    for (const type of types) {
      const now = changedCondition(type, before, after)
      if (now?.status === status && !WORK.has(now.reason)) found.push(warning(now.reason, now.message))
    }
  }
  look(HEALTH, 'False')
  look(NEWS, 'True')
  return found
}

const phaseStory = (from: Phase, to: Phase, ready: Condition | undefined): readonly StoryEvent[] => {
  const message = ready?.message ?? ''
  switch (to) {
    case 'provisioning':
      return [normal('Provisioning', 'Creating the database')]
    case 'ready':
      return [from === 'suspended' ? normal('Resumed', message) : normal('Ready', message)]
    case 'suspended':
      return [normal('Suspended', message)]
    case 'updating':
      return [normal('Updating', 'Bringing Postgres back')]
    case 'failed_recoverable':
      return [warning(ready?.reason ?? 'Failed', message)]
    case 'deleting':
      return [normal('Deleting', 'The environment is being deleted')]
    case 'requested':
    case 'deleted':
      return []
  }
}

/** A server that is stopped for what was asked for. */
const restart = (before: Environment, after: Environment): readonly StoryEvent[] => {
  const now = changedCondition('Reconciling', before, after)
  return now?.reason === RESTART_DUE ? [normal(now.reason, now.message)] : []
}

/** Work that has no phase of its own: a suspend or a resume that begins. */
const progress = (before: Environment, after: Environment): readonly StoryEvent[] => {
  const now = changedCondition('Reconciling', before, after)
  if (now?.reason === WRITE_REFUSED) return [warning(now.reason, now.message)]
  const begins = now?.reason === 'Suspending' || now?.reason === 'Resuming'
  return begins ? [normal(now.reason, now.message)] : []
}

const expired = (before: Environment, after: Environment): readonly StoryEvent[] => {
  const now = changedCondition('Expired', before, after)
  return now?.status === 'True' ? [normal('TTLExpired', now.message)] : []
}

/** What to tell of an action that succeeded, beyond what the status says of it. */
export const actionStory = (action: Action, environment: Environment): StoryEvent | undefined => {
  switch (action.kind) {
    case 'make-credentials':
      return environment.status?.everReady === true
        ? warning('CredentialsRemade', 'The stored passwords were gone; new ones were made')
        : undefined
    case 'apply-credentials':
      return environment.status?.phase === 'ready' && !isRotationDue(environment)
        ? driftStory('The roles’ passwords were set to the stored ones again')
        : undefined
    case 'publish-credentials':
      return environment.status?.everReady === true
        ? driftStory('What clients find in their Secret was put right')
        : undefined
    case 'promote-credentials':
      return normal('CredentialsRotated', 'New passwords are in force; a sign-in with them succeeded')
    case 'prepare-rotation':
    case 'add-finalizer':
    case 'set-deletion-policy':
    case 'start':
    case 'stop':
    case 'expire':
    case 'tear-down':
    case 'release':
      return undefined
  }
}

/** Something was not as it should be, and is again. */
export const driftStory = (message: string): StoryEvent => normal(DRIFT_CORRECTED, message)

/** What a deletion came to: told before the resource goes, since nobody looks for the events of what is not there. */
export const deletionStory = (retainedAt: string | undefined): StoryEvent =>
  retainedAt === undefined
    ? normal('DataRemoved', 'The data of this environment was removed')
    : normal('DataRetained', `The data of this environment is kept: ${retainedAt}`)
