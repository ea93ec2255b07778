/** What the conditions of a living environment say. Pure; `decide-life.ts` knows when. */
import type { Phase } from '../../lib/model/environment.ts'
import type { Violated } from './checks/check.ts'
import { RESTART_DUE } from './checks/settings-applied.ts'
import { type Claims, claimsOf, fails, holds, unknown } from './conditions.ts'
import type { Observed } from './observed.ts'

/** What is wrong and may be told, as opposed to what is only not done yet. */
export interface Problem {
  readonly about: NonNullable<Violated['about']>
  readonly reason: string
  readonly message: string
}

/** How an environment is about to stand. */
export interface Scene {
  readonly phase: Phase
  readonly next: Phase
  /** The goal is that nothing runs. */
  readonly stopping: boolean
  readonly found: Violated | undefined
  readonly problem: Problem | undefined
  /** The problem is one of our own actions failing, and not something that may pass by itself. */
  readonly actionFails: boolean
  /** The spec is newer than the status. */
  readonly changed: boolean
}

const READY: Claims = {
  Ready: holds('Ready', 'Postgres answers and a client can sign in'),
  StorageReady: holds('DataPresent', 'The data is there'),
  CredentialsReady: holds('SignInProven', 'A sign-in with the stored password succeeded'),
  DatabaseReachable: holds('Answering', 'Postgres answers'),
}

const WORDS = {
  Provisioning: 'Creating the database',
  Updating: 'Bringing Postgres back',
  Resuming: 'Starting Postgres on the data that was kept',
  Suspending: 'Stopping Postgres',
} as const

/** Conditions that are worked out anew each time and never carried along. */
const carried = (observed: Observed): Claims => {
  const {
    Expired: _expired,
    Expiring: _expiring,
    Stalled: _stalled,
    ...rest
  } = claimsOf(observed.environment.status?.conditions)
  return rest
}

/** The conditions for a scene, those of expiry aside. */
export const lifeClaims = (scene: Scene, observed: Observed): Claims => {
  const { next, stopping, found } = scene
  if (found === undefined && next === 'ready') return { ...READY, ...room(observed), ...refused(observed) }
  if (found === undefined && next === 'suspended') return { ...suspended(observed), ...refused(observed) }
  if (stopping) return suspending(scene, observed)
  if (next === 'ready') return unsettled(scene, observed)
  if (next === 'failed_recoverable') return failed(scene, observed)
  return underway(scene, observed)
}

const NEARLY_FULL = fails('DiskNearlyFull', 'The disk that holds the data is nearly full')

/** What is wrong with the storage is told while everything still works, and while there is time to do something about it. */
const room = (observed: Observed): Claims => {
  const { instance } = observed
  const problem = instance?.storageProblem
  if (problem !== undefined) return { StorageReady: fails(problem.reason, problem.message) }
  // Whoever has not looked yet says what was said before.
  const before = carried(observed).StorageReady
  const low = instance?.storage?.low ?? before?.reason === NEARLY_FULL.reason
  return low ? { StorageReady: NEARLY_FULL } : {}
}

/** Clients notice nothing; what somebody changed cannot be put right. */
const refused = ({ instance }: Observed): Claims =>
  instance?.refused === undefined ? {} : { Reconciling: holds(instance.refused.reason, instance.refused.message) }

const suspended = (observed: Observed): Claims => {
  const { instance, environment } = observed
  const before = carried(observed)
  const everReady = environment.status?.everReady === true
  const unclean = instance?.cleanStop === undefined ? before.UncleanStop !== undefined : !instance.cleanStop
  return {
    Ready: fails('Suspended', 'Suspended: Postgres is stopped and its data kept'),
    StorageReady:
      instance?.initialized === true
        ? holds('DataPresent', 'The data is there')
        : everReady
          ? fails('DataMissing', 'The data of this environment is not where it was left')
          : unknown('NoData', 'It was never ready and holds no data'),
    ...(before.CredentialsReady === undefined ? {} : { CredentialsReady: before.CredentialsReady }),
    DatabaseReachable: fails('Suspended', 'Postgres is stopped'),
    Suspended: holds('Suspended', 'No process of it is left'),
    ...(unclean ? { UncleanStop: holds('NoShutdownCheckpoint', 'Postgres recovers at its next start') } : {}),
  }
}

const suspending = (scene: Scene, observed: Observed): Claims => {
  const claim = fails('Suspending', WORDS.Suspending)
  const { Suspended: _, ...before } = carried(observed)
  return withProblem(
    {
      ...before,
      Ready: claim,
      DatabaseReachable: claim,
      Reconciling: holds('Suspending', WORDS.Suspending),
    },
    scene.problem,
  )
}

/** Ready, and something small is being put right: worth a word only when the spec changed or we fail at it. */
const unsettled = ({ found, problem, actionFails, changed }: Scene, observed: Observed): Claims => {
  const before = carried(observed)
  if (actionFails && problem !== undefined)
    return {
      ...before,
      [problem.about]: fails(problem.reason, problem.message),
      Reconciling: holds(problem.reason, problem.message),
    }
  if (changed && found !== undefined) return { ...before, Reconciling: holds(found.reason, found.message) }
  return before
}

const failed = (scene: Scene, observed: Observed): Claims => {
  const { found, problem } = scene
  const { Reconciling: _, Suspended: __, ...before } = carried(observed)
  const stalled = found?.stalled === true
  const known = isFailure(before)
  const claims =
    problem !== undefined
      ? withProblem(before, problem)
      : known
        ? before
        : {
            ...before,
            Ready: fails('DeadlineExceeded', `Not ready in time: ${found?.message ?? 'Postgres does not run'}`),
          }
  return {
    ...claims,
    ...(stalled
      ? { Stalled: holds(found.reason, found.message) }
      : { Reconciling: holds('Retrying', 'Postgres will be tried again') }),
  }
}

/** Whether Ready already names a failure, and not only work under way. */
const isFailure = ({ Ready }: Claims): boolean =>
  Ready?.status === 'False' && !(Ready.reason in WORDS) && Ready.reason !== 'Suspended'

const underway = (scene: Scene, observed: Observed): Claims => {
  const { phase, next, changed, problem, found } = scene
  const before = carried(observed)
  const word = next === 'provisioning' ? 'Provisioning' : next === 'updating' ? 'Updating' : 'Resuming'
  const said = before.Reconciling?.reason
  const same = phase === next && !changed && (said === word || said === RESTART_DUE)
  const message = WORDS[word]
  const base: Claims = same
    ? before
    : {
        Ready: fails(word, message),
        // Why it does not run, where that is our own doing.
        Reconciling: found?.reason === RESTART_DUE ? holds(RESTART_DUE, found.message) : holds(word, message),
        StorageReady: before.StorageReady ?? unknown(word, message),
        CredentialsReady: before.CredentialsReady ?? unknown(word, message),
        DatabaseReachable: fails(word, message),
        // The phase stays `suspended` until a resume is done.
        ...(next === 'suspended' && before.Suspended !== undefined ? { Suspended: before.Suspended } : {}),
        ...(before.UncleanStop === undefined ? {} : { UncleanStop: before.UncleanStop }),
      }
  return withProblem(base, problem)
}

/** A problem shows in its own condition and in Ready. */
const withProblem = (claims: Claims, problem: Problem | undefined): Claims => {
  if (problem === undefined) return claims
  const claim = fails(problem.reason, problem.message)
  return { ...claims, Ready: claim, [problem.about]: claim }
}
