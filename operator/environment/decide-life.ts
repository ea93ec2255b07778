/** The life of an environment: bring Postgres up, keep it up, suspend it, and try again where that fails. */
import { firstViolated, type Violated } from './checks/check.ts'
import { RUNNING, STOPPED } from './checks/ladders.ts'
import { conditionsOf } from './conditions.ts'
import type { Decision } from './decision.ts'
import { expiresAtText, expiryOf, judgedSpec } from './expiry.ts'
import { lifeClaims, type Scene } from './life-claims.ts'
import { elapsedMs, type Limits, pollMs, retryAfterMs } from './limits.ts'
import { nextPhase, stopsNow } from './next-phase.ts'
import type { Observed } from './observed.ts'
import { operationOf } from './operation.ts'
import { attemptSince, type Trouble, troubleRestMs } from './recollection.ts'
import { compact, type StatusDraft } from './status-draft.ts'

export const decideLife = (observed: Observed, nowMs: number, limits: Limits): Decision => {
  const { environment, wanted, recollection } = observed
  const { metadata, spec } = environment
  const status = environment.status ?? {}
  const phase = status.phase ?? 'requested'
  const changed = status.observedGeneration !== metadata.generation
  const stopping = stopsNow(phase, wanted.suspended)
  const found = firstViolated(stopping ? STOPPED : RUNNING, observed)
  const trouble = troubleWith(found, observed)
  const retryDue = phase === 'failed_recoverable' && isRetryDue(observed, found, changed, nowMs)
  const next = nextPhase({
    phase,
    everReady: status.everReady === true,
    wantedSuspended: wanted.suspended,
    satisfied: found === undefined,
    outage: found?.outage === true,
    exhausted: found !== undefined && isExhausted(observed, found, trouble, nowMs, limits),
    retryDue,
  })
  const retrying = retryDue && next !== phase
  const problem = trouble === undefined ? told(found) : { ...trouble, about: trouble.condition }
  const scene: Scene = { phase, next, stopping, found, problem, actionFails: trouble !== undefined, changed }
  const now = new Date(nowMs).toISOString()
  const { claims: expiryClaims, graceUntilMs, changesInMs } = expiryOf(observed, nowMs, limits)
  const claims = { ...lifeClaims(scene, observed), ...expiryClaims }
  const operation = operationOf(spec.request, status.operation, {
    phase: next,
    wantedSuspended: wanted.suspended,
    satisfied: found === undefined,
    stalled: next === 'failed_recoverable' && found?.stalled === true ? found.message : undefined,
    trouble: next === 'failed_recoverable' && !stopping ? claims.Ready?.message : problem?.message,
    retrying,
  })
  const resting = next === 'failed_recoverable' && !stopping
  const pacedMs = trouble === undefined ? 0 : troubleRestMs(trouble, nowMs)
  return {
    status: compact({
      ...status,
      phase: next,
      phaseTransitionTime: next === status.phase ? status.phaseTransitionTime : now,
      ...judgedSpec(environment),
      conditions: conditionsOf(claims, status.conditions, metadata.generation, now),
      operation,
      expiresAt: expiresAtText(wanted),
      graceUntil: graceUntilMs === undefined ? undefined : new Date(graceUntilMs).toISOString(),
      deletionPolicy: wanted.deletionPolicy,
      ...factsOf(observed, scene, retrying),
    }),
    action: resting || pacedMs > 0 ? undefined : found?.repair,
    requeueAfterMs: Math.min(lookAgainMs(observed, scene, pacedMs, nowMs), changesInMs, recollection.resyncMs),
  }
}

/** The trouble that stands in the way of what was found, if it is still the same thing and the same spec. */
const troubleWith = (found: Violated | undefined, { recollection, environment }: Observed): Trouble | undefined => {
  const { trouble } = recollection
  const same = trouble?.action === found?.repair?.kind && trouble?.generation === environment.metadata.generation
  return same ? trouble : undefined
}

const told = (found: Violated | undefined): Scene['problem'] =>
  found?.about === undefined ? undefined : { about: found.about, reason: found.reason, message: found.message }

const isExhausted = (
  { environment, instance, recollection }: Observed,
  found: Violated,
  trouble: Trouble | undefined,
  nowMs: number,
  limits: Limits,
): boolean => {
  if (found.stalled === true) return true
  const since = attemptSince(environment)
  if (since === undefined || isOursToDo(found, trouble)) return false
  const failedStarts = (instance?.startFailures ?? 0) - recollection.attempt.failuresBefore
  return (
    elapsedMs(since, nowMs) >= limits.attemptDeadlineMs ||
    failedStarts >= limits.maxFailedStarts ||
    (trouble?.count ?? 0) >= limits.maxFailedStarts
  )
}

/** The server answers, and nothing stands in the way of what comes next: that nobody got round to it is no fault of the attempt's. */
const isOursToDo = ({ about, repair }: Violated, trouble: Trouble | undefined): boolean =>
  about === undefined && repair?.kind === 'apply-credentials' && trouble === undefined

/** How long a failed environment still rests. */
const restMs = ({ environment }: Observed, nowMs: number): number => {
  const { phaseTransitionTime, attempts } = environment.status ?? {}
  const restedMs = phaseTransitionTime === undefined ? Infinity : elapsedMs(phaseTransitionTime, nowMs)
  return Math.max(0, retryAfterMs(attempts ?? 1) - restedMs)
}

/** At once when the spec changed (a resume changes it) or Postgres came back by itself; else after the rest. */
const isRetryDue = (observed: Observed, found: Violated | undefined, changed: boolean, nowMs: number): boolean => {
  if (found === undefined) return true
  return found.stalled !== true && (changed || restMs(observed, nowMs) === 0)
}

/** What is recorded as fact: only what a finished move makes true, so that work under way is not one write after another. */
const factsOf = (
  { environment, wanted, instance }: Observed,
  scene: Scene,
  retrying: boolean,
): Partial<StatusDraft> => {
  const { spec, status } = environment
  const { next, found } = scene
  const settled = next === 'ready' && found === undefined
  if (settled)
    return {
      everReady: true,
      attempts: undefined,
      endpoint: instance?.endpoint ?? status?.endpoint,
      node: instance?.node,
      image: instance?.image ?? status?.image,
      lineage: instance?.lineage ?? status?.lineage,
      credentialsRotation: environment.spec.credentialsRotation ?? status?.credentialsRotation,
      resources: wanted.figures,
    }
  const attempts = status?.attempts
  if (next === 'suspended') return { attempts: undefined, ...(found === undefined ? { node: undefined } : {}) }
  if (next === 'ready') return { attempts: undefined }
  return {
    attempts: retrying ? (attempts ?? 1) + 1 : (attempts ?? 1),
    // Nothing runs: an image that the spec names is what is tried from now on.
    image: retrying ? (spec.image ?? status?.image) : status?.image,
    resources: status?.everReady === true ? status.resources : wanted.figures,
  }
}

const lookAgainMs = (observed: Observed, scene: Scene, pacedMs: number, nowMs: number): number => {
  const { next, stopping, found } = scene
  if (pacedMs > 0) return pacedMs
  if (found === undefined) return Infinity
  if (next === 'failed_recoverable' && !stopping)
    return found.stalled === true ? Infinity : restMs(observed, nowMs) || retryAfterMs(1)
  if (next === 'ready' && !stopping) return 1_000
  const since = attemptSince(observed.environment)
  return pollMs(since === undefined ? 0 : elapsedMs(since, nowMs))
}
