/**
 * Brings one environment a step nearer to what its spec says, again and again: observe, decide, report, apply. It goes
 * round as long as there is something to do at once, so that nothing waits for a timer which does not have to.
 * Level-based: what happened does not matter, only what is.
 */
import type { Environment } from '../../crds/environment.ts'
import { keyText, type ResourceKey } from '../../lib/model/resource.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'
import type { Log } from '../../runtime/log/log.ts'
import { ConditionError } from '../host/host.ts'
import { toldRefusal } from '../host/refused-write.ts'
import type { Action, ActionKind } from './action.ts'
import { apply } from './apply.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'
import type { DefaultFigures } from './defaults.ts'
import type { Limits } from './limits.ts'
import { instanceRef, observe } from './observe.ts'
import type { Observed } from './observed.ts'
import type { PhaseGauge } from './phase-metrics.ts'
import type { EnvironmentReader } from './reader.ts'
import { blank, type Recollection, withAction, withNews, withObservation, withTrouble } from './recollection.ts'
import { report } from './report.ts'
import { actionStory, DRIFT_CORRECTED, storyOf } from './story.ts'
import type { TearDownPorts } from './tear-down.ts'
import { unobserved } from './unobserved.ts'

export interface ReconcilerOptions extends TearDownPorts {
  readonly reader: EnvironmentReader
  readonly defaults: DefaultFigures
  readonly limits: Limits
  /** How long an environment rests between two looks when nothing happens. */
  readonly resyncMs: number
  readonly metrics: PhaseGauge
  /** Told of what somebody changed in an environment and was put right, by its kind. */
  readonly onDrift?: (kind: string) => void
  /** Epoch milliseconds. */
  readonly now: () => number
  /** 0 ≤ x < 1. */
  readonly random: () => number
  /** Called once an environment's status says how it is, before anything is done about it. */
  readonly onJudged?: (key: ResourceKey) => void
}

export interface EnvironmentReconciler {
  /** @throws whatever a port throws, ConditionError aside: the caller tries again with back-off */
  reconcile(
    key: ResourceKey,
    context: { readonly log: Log; readonly signal?: AbortSignal },
  ): Promise<{ requeueAfterMs?: number }>
  /** The host says that something happened to it: its next look proves a sign-in again, or goes on with its deletion. */
  suspect(key: ResourceKey): void
}

/** What was seen of an environment and decided about it, its status reported. */
interface Judged {
  readonly observed: Observed
  readonly kept: CredentialSet | undefined
  readonly decision: Decision
  readonly environment: Environment
}

/** An action that did not have its effect by the next look is not repeated at once. */
const REPEAT_MS = 500
/** A request to delete is written a moment before the deletion itself. Whoever wrote it may have ended between the two. */
const ABOUT_TO_GO_MS = 1_000
/** Far above what any environment needs; only a decision that contradicts itself gets here. */
const MAX_ROUNDS = 20

export const createReconciler = (options: ReconcilerOptions): EnvironmentReconciler => {
  const { store, reader, host, credentials, namespaces, defaults, limits, metrics, now, random } = options
  const recollections = new Map<string, Recollection>()

  const recall = (id: string, { metadata, status }: Environment): Recollection => {
    const known = recollections.get(id)
    if (known?.uid === metadata.uid) return known
    const trusted = !limits.proofAtStart && status?.phase === 'ready'
    const provenAtMs = trusted ? now() - limits.proofEveryMs * random() : undefined
    return blank(metadata.uid, options.resyncMs * (0.8 + 0.4 * random()), provenAtMs)
  }

  /** @returns what to do after it: go round again, or wait this long */
  const act = async (
    id: string,
    action: Action,
    { environment, kept }: Pick<Judged, 'environment' | 'kept'>,
    log: Log,
  ): Promise<'again' | 'wait'> => {
    const before = recall(id, environment)
    try {
      const more = await apply(action, environment, options, { nowMs: now(), kept })
      recollections.set(id, withAction(before, action))
      const story = actionStory(action, environment)
      if (story !== undefined) options.events?.tell(instanceRef(environment), story)
      if (story?.reason === DRIFT_CORRECTED)
        options.onDrift?.(action.kind === 'publish-credentials' ? 'Secret' : 'Role')
      return more ? 'again' : 'wait'
    } catch (thrown) {
      const error = toldRefusal(thrown)
      if (!(error instanceof ConditionError)) throw thrown
      const known = before.trouble?.reason === error.reason
      log[known ? 'debug' : 'warn']({ action: action.kind, err: error }, 'An action failed and will be tried again')
      recollections.set(id, withTrouble(before, action.kind, error, environment.metadata.generation, now()))
      return 'again'
    }
  }

  /** Observes, decides and reports. undefined: the resource is gone; going: whoever wants that is about to delete it. */
  const judge = async (
    key: ResourceKey,
    id: string,
    log: Log,
    known: CredentialSet | undefined,
  ): Promise<Judged | 'going' | undefined> => {
    const environment = await reader.get(key)
    if (environment === undefined) return undefined
    const recollection = recall(id, environment)
    if (isAboutToGo(environment) && !recollection.deletionAwaited) {
      recollections.set(id, { ...recollection, deletionAwaited: true })
      return 'going'
    }
    const { observed, kept } = await observe(
      environment,
      recollection,
      { host, credentials, namespaces },
      { defaults, limits, nowMs: now() },
      known,
    ).catch(async (thrown: unknown) => {
      // How it is cannot be told; that, and why, is.
      const error = toldRefusal(thrown)
      if (error instanceof ConditionError) await report(store, environment, unobserved(environment, error, now()))
      throw thrown
    })
    const decision = decide(observed, now(), limits)
    const reported = await report(store, environment, decision.status)
    const seen = observed.instance
    // A new phase begins a new attempt: it has to begin before the action that belongs to it.
    recollections.set(
      id,
      seen === undefined ? observed.recollection : withObservation(observed.recollection, reported, seen),
    )
    tell(environment, reported, metrics, log)
    for (const event of storyOf(environment, reported)) options.events?.tell(instanceRef(environment), event)
    options.onJudged?.(key)
    return { observed, kept, decision, environment: reported }
  }

  return {
    reconcile: async (key, { log, signal }) => {
      const id = keyText(key)
      const done = new Set<ActionKind>()
      let known: CredentialSet | undefined
      for (let round = 0; round < MAX_ROUNDS; round++) {
        signal?.throwIfAborted()
        const judged = await judge(key, id, log, known)
        if (judged === undefined) {
          recollections.delete(id)
          metrics.forget(key)
          options.onJudged?.(key)
          return {}
        }
        if (judged === 'going') return { requeueAfterMs: ABOUT_TO_GO_MS }
        const { observed, kept, decision, environment } = judged
        const { action, requeueAfterMs } = decision
        const moved = observed.environment.status?.phase !== environment.status?.phase
        if (action === undefined && !moved) return requeueAfterMs === undefined ? {} : { requeueAfterMs }
        if (action === undefined) continue
        if (done.has(action.kind)) return { requeueAfterMs: REPEAT_MS }
        done.add(action.kind)
        // What Postgres was just given is proven next; whatever else was done, they are read anew.
        known = action.kind === 'apply-credentials' ? kept : undefined
        log.debug({ action: action.kind, uid: environment.metadata.uid }, 'Acting on an environment')
        if ((await act(id, action, { environment, kept }, log)) === 'wait')
          return { requeueAfterMs: requeueAfterMs ?? REPEAT_MS }
      }
      log.warn({ key: id }, 'An environment keeps changing: going on later')
      return { requeueAfterMs: REPEAT_MS }
    },
    suspect: key => {
      const known = recollections.get(keyText(key))
      if (known !== undefined) recollections.set(keyText(key), withNews(known))
    },
  }
}

/** Whatever its status said now would be refused as old. */
const isAboutToGo = ({ spec, status, metadata }: Environment): boolean =>
  spec.request?.verb === 'delete' &&
  metadata.deletionTimestamp === undefined &&
  status?.observedGeneration !== metadata.generation

const tell = (before: Environment, after: Environment, metrics: PhaseGauge, log: Log): void => {
  const [from, to] = [before.status?.phase ?? 'requested', after.status?.phase ?? 'requested']
  metrics.stands(after.metadata, to)
  if (from === to) return
  const since = before.status?.phaseTransitionTime ?? before.metadata.creationTimestamp
  metrics.moved(from, to, Date.parse(after.status?.phaseTransitionTime ?? since) - Date.parse(since))
  const { uid, generation } = after.metadata
  log.info({ uid, generation, from, to, operation: after.spec.request?.id }, `Environment is ${to}`)
}
