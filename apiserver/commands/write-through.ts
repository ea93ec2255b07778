/**
 * How PATCH and renew run: the caller has the answer only once the resource store holds the change, so that what was
 * acknowledged never loses to the expiry sweep.
 *
 *   key and intent, committed -> the dispatcher carries it, bound to the version that it looked at -> row, audit event
 *   and answer, in the transaction that records it -> the callers who wait for it, read it
 *
 * The key is taken before anything else, so whoever repeats a call waits for the change of the first one: it happens once
 * and leaves one event, also when processes die in between. A change that nobody has tried to carry in time is taken back;
 * one that was begun is carried to its end, and a repeated call learns of it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { ENVIRONMENT_GONE, OVERTAKEN } from '../../lib/model/operation.ts'
import type { EnvironmentRecord } from '../contract/environments.ts'
import { CommitUnknownError } from '../store/database-error.ts'
import type { StoredReply } from '../store/idempotency.ts'
import type { Sql } from '../store/sql.ts'
import {
  type ChangeCall,
  changeFate,
  findChangeByKey,
  GIVEN_UP,
  giveUpChange,
  insertChange,
  type SpecChange,
} from '../store/written-through.ts'
import type { Call, Reply } from './call.ts'
import { callMetadata } from './call-events.ts'
import { type CallKey, callKeyOf } from './call-key.ts'
import type { CommandDependencies } from './dependencies.ts'
import { type AccessedEnvironment, accessEnvironment, operationInProgress } from './environment-access.ts'
import { keepRefusal, takeKeyOrFindIt, UNKNOWN_COMMITS } from './execute.ts'
import { replay } from './replay.ts'

/** What a call wants changed. `parameters` are those of its audit event. */
export interface WantedChange {
  readonly spec: SpecChange
  readonly action: ChangeCall['action']
  readonly parameters: Readonly<Record<string, unknown>>
}

/** A change that was committed, by this call or by an earlier one with its key. */
interface Begun {
  readonly id: number
  readonly environmentRow: string
  readonly isOurs: boolean
}

const POLL_FIRST_MS = 4
const POLL_LAST_MS = 50
const WAKE_EVERY_MS = 250

/**
 * Changes an environment's spec. `want` judges the environment, which is locked, and may be called again.
 * @throws DomainError what `want` refuses; `environment_not_found`, `forbidden`, `operation_in_progress` when the
 * environment is deleted first, `store_unavailable` when the store does not take it in time
 */
export const writeThrough = async (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  want: (environment: AccessedEnvironment) => WantedChange,
): Promise<Reply<200, EnvironmentRecord>> => {
  const key = callKeyOf(call, deps)
  const again = (stored: StoredReply): Reply<200, EnvironmentRecord> =>
    replay(stored, key, { sealingKey: deps.sealingKey, own: false }) as Reply<200, EnvironmentRecord>
  let begun: Begun | StoredReply | undefined
  for (let unknown = 0; begun === undefined; ) {
    try {
      begun = await deps.database.transaction(sql => begin(sql, call, path, key, want))
      if (unknown > 0) begun = { ...begun, isOurs: true }
    } catch (error) {
      // The key tells whether the commit happened.
      if (error instanceof CommitUnknownError && key !== undefined && ++unknown < UNKNOWN_COMMITS) continue
      begun = await keepRefusal(deps, key, error, call.requestId)
      if (begun === undefined) throw error
    }
  }
  if ('fingerprint' in begun) return again(begun)
  const body = await answerTo(deps, begun)
  return { status: 200, body, ...(begun.isOurs ? {} : { headers: { 'Idempotency-Replayed': 'true' } }) }
}

/** Takes the key and commits to the change; or finds what the key stands for. */
const begin = async (
  sql: Sql,
  call: Call,
  path: EnvironmentPath,
  key: CallKey | undefined,
  want: (environment: AccessedEnvironment) => WantedChange,
): Promise<Begun | StoredReply> => {
  const taken = key === undefined ? 'taken' : await takeKeyOrFindIt(sql, key)
  if (taken !== 'taken' && taken.reply !== undefined) return taken.reply
  if (taken !== 'taken' && key !== undefined) {
    const earlier = await findChangeByKey(sql, key)
    if (earlier === undefined) throw new Error('A key was taken for a change, but there is none')
    return { ...earlier, isOurs: false }
  }
  const environment = await accessEnvironment(sql, call, path)
  const { spec, action, parameters } = want(environment)
  const id = await insertChange(sql, {
    environmentRow: environment.id,
    requestId: call.requestId,
    spec,
    call: { actor: call.principal.subject, action, metadata: callMetadata(call, parameters) },
    key,
  })
  return { id, environmentRow: environment.id, isOurs: true }
}

/** The body that the change is answered with, once it is carried. @throws DomainError why it is not */
const answerTo = async (deps: CommandDependencies, { id, environmentRow }: Begun): Promise<Buffer> => {
  const giveUpAt = performance.now() + deps.settings.writeThroughWaitMs
  let wakeAt = 0
  for (let pollMs = POLL_FIRST_MS; ; pollMs = Math.min(POLL_LAST_MS, pollMs * 1.5)) {
    if (performance.now() >= wakeAt) {
      deps.wakeDispatcher(environmentRow)
      wakeAt = performance.now() + WAKE_EVERY_MS
    }
    await sleep(pollMs)
    const answer = await answerSoFar(deps, id)
    if (answer !== undefined) return answer
    if (performance.now() < giveUpAt) continue
    await deps.database.transaction(sql => giveUpChange(sql, id))
    // It may have been carried in this very moment.
    const last = await answerSoFar(deps, id)
    if (last !== undefined) return last
    throw tooSlow()
  }
}

const tooSlow = (): DomainError =>
  new DomainError('store_unavailable', 'The resource store did not take the change in time; try again', {
    retryAfterSeconds: 1,
  })

const answerSoFar = async ({ database }: CommandDependencies, id: number): Promise<Buffer | undefined> => {
  const fate = await changeFate(database, id)
  if (fate === undefined) throw new Error('A change that was committed is gone')
  const { state, lastError, answer } = fate
  if (state === 'pending') return undefined
  if (answer !== null) return answer
  if (lastError === GIVEN_UP) throw tooSlow()
  if (state === 'cancelled' || lastError === ENVIRONMENT_GONE || lastError === OVERTAKEN) throw operationInProgress()
  // No call can ask for what the store's rules refuse: a mistake of ours, or a policy of the cluster.
  throw new Error(`A change was refused: ${lastError ?? 'for no reason'}`)
}
