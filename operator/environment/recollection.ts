/**
 * What the operator remembers of an environment between two looks. All of it may be lost at any moment, a restart loses
 * it: then a start is asked for once more, a sign-in proven once more, a retry comes sooner. Nothing else may follow.
 */

import { conditionOf } from '../../crds/conditions.ts'
import type { Environment } from '../../crds/environment.ts'
import type { ConditionError, ObservedInstance, SignIn } from '../host/host.ts'
import type { Action, ActionKind } from './action.ts'
import { figuresText } from './defaults.ts'

/** An action that failed for a reason which people can do something about. */
export interface Trouble {
  readonly action: ActionKind
  readonly condition: ConditionError['condition']
  readonly reason: string
  readonly message: string
  /** Failures in a row. */
  readonly count: number
  /** Not tried again before, epoch milliseconds; a change of the spec ends the wait. */
  readonly retryAtMs: number
  readonly generation: number
}

/** One try at bringing Postgres up: it begins with a phase, or with a resume. */
interface Attempt {
  readonly since: string
  /** Failed starts that belong to earlier attempts. */
  readonly failuresBefore: number
  /** A process that did not answer was stopped in this attempt. */
  readonly stopped: boolean
}

export interface Recollection {
  readonly uid: string
  /** The figures (as text) that the host last took. */
  readonly startedWith: string | undefined
  readonly credentialsApplied: boolean
  /** Passwords were seen or made: until something runs that they could be tried on, they are not read again. */
  readonly credentialsKept: boolean
  /** When a sign-in last succeeded, epoch milliseconds. */
  readonly provenAtMs: number | undefined
  /** Sign-ins in a row that were refused or met nobody. */
  readonly failedSignIns: number
  readonly attempt: Attempt
  readonly trouble: Trouble | undefined
  /** Somebody was about to delete it, and was given a moment for that. */
  readonly deletionAwaited: boolean
  /** How long this environment rests between two looks: jittered once, so that many do not wake together. */
  readonly resyncMs: number
}

/** What is remembered of an environment that was never looked at; `provenAtMs`: what its sign-in is taken for. */
export const blank = (uid: string, resyncMs: number, provenAtMs?: number): Recollection => ({
  uid,
  startedWith: undefined,
  credentialsApplied: false,
  credentialsKept: false,
  provenAtMs,
  failedSignIns: 0,
  attempt: { since: '', failuresBefore: 0, stopped: false },
  trouble: undefined,
  deletionAwaited: false,
  resyncMs,
})

/**
 * When the attempt under way began: with the phase; for a resume, which has no phase of its own, when Reconciling
 * became true. undefined: none is under way.
 */
export const attemptSince = ({ status }: Environment): string | undefined => {
  const reconciling = conditionOf(status?.conditions, 'Reconciling')
  return status?.phase === 'suspended' ? reconciling?.lastTransitionTime : status?.phaseTransitionTime
}

const isUnderWay = ({ status }: Environment): boolean =>
  status?.phase === 'provisioning' || status?.phase === 'updating' || status?.phase === 'suspended'

/** Takes in what was just seen. */
export const withObservation = (
  before: Recollection,
  environment: Environment,
  instance: ObservedInstance,
): Recollection => {
  const since = attemptSince(environment) ?? ''
  const fresh = since !== before.attempt.since
  // The first attempt counts every failure there is; a later one, or a resume, only its own.
  const first = (environment.status?.attempts ?? 1) <= 1 && environment.status?.phase !== 'suspended'
  const failuresBefore = first ? 0 : instance.startFailures
  const running = instance.state === 'running'
  // Each attempt begins with a start; a failed environment whose host tries on keeps what it was started with.
  const startedWith = fresh && isUnderWay(environment) ? undefined : before.startedWith
  return {
    ...before,
    startedWith,
    provenAtMs: running ? before.provenAtMs : undefined,
    failedSignIns: running ? before.failedSignIns : 0,
    trouble: fresh && before.attempt.since !== '' ? undefined : before.trouble,
    attempt: fresh
      ? { since, failuresBefore, stopped: false }
      : { ...before.attempt, failuresBefore: Math.min(before.attempt.failuresBefore, instance.startFailures) },
  }
}

/** Takes in how a sign-in went; undefined: none was tried. */
export const withSignIn = (before: Recollection, signIn: SignIn | undefined, nowMs: number): Recollection => {
  if (signIn === undefined) return before
  return signIn.result === 'ok'
    ? { ...before, provenAtMs: nowMs, failedSignIns: 0, credentialsApplied: true }
    : { ...before, provenAtMs: undefined, failedSignIns: before.failedSignIns + 1 }
}

/** Takes in that an action was done. */
export const withAction = (before: Recollection, action: Action): Recollection => {
  const calm = before.trouble?.action === action.kind ? { ...before, trouble: undefined } : before
  switch (action.kind) {
    case 'start':
      return { ...calm, startedWith: figuresText(action.figures), provenAtMs: undefined }
    case 'stop':
      return { ...calm, startedWith: undefined, provenAtMs: undefined, attempt: { ...calm.attempt, stopped: true } }
    case 'make-credentials':
    case 'prepare-rotation':
      return { ...calm, credentialsApplied: false, credentialsKept: true, provenAtMs: undefined }
    case 'apply-credentials':
      return { ...calm, credentialsApplied: true, provenAtMs: undefined }
    case 'promote-credentials':
    case 'publish-credentials':
    case 'add-finalizer':
    case 'set-deletion-policy':
    case 'expire':
    case 'tear-down':
    case 'release':
      return calm
  }
}

/** Takes in that something happened to the instance: what was proven is not any more, and what a deletion waits for may be over. */
export const withNews = (before: Recollection): Recollection => ({
  ...before,
  provenAtMs: undefined,
  trouble: before.trouble?.action === 'tear-down' ? { ...before.trouble, retryAtMs: 0 } : before.trouble,
})

const TROUBLE_BASE_MS = 250
const TROUBLE_CAP_MS = 60_000

/** How long a failed action still rests. Where the clock was set back, it has rested enough. */
export const troubleRestMs = ({ retryAtMs }: Trouble, nowMs: number): number => {
  const restMs = retryAtMs - nowMs
  return restMs > TROUBLE_CAP_MS ? 0 : Math.max(0, restMs)
}

/** Takes in that an action failed; each failure in a row doubles the wait. */
export const withTrouble = (
  before: Recollection,
  action: ActionKind,
  error: ConditionError,
  generation: number,
  nowMs: number,
): Recollection => {
  const { trouble } = before
  const count = trouble?.action === action && trouble.generation === generation ? trouble.count + 1 : 1
  const waitMs = Math.min(TROUBLE_CAP_MS, TROUBLE_BASE_MS * 2 ** (count - 1))
  const { condition, reason, message } = error
  return {
    ...before,
    trouble: { action, condition, reason, message, count, generation, retryAtMs: nowMs + waitMs },
  }
}
