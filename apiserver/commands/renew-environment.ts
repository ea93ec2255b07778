/**
 * Renewing is the one verb that is written through: the resource store has it before the caller has the answer, so that an
 * acknowledged renewal never loses to the sweep.
 *
 *   settle what is on its way -> look at the resource -> note the renewal (pending) -> patch, bound to what was seen
 *   -> row, audit event, stored answer, renewal applied: one transaction
 *
 * A crash between the patch and the last step leaves a pending renewal that `finishStaleRenewals` settles. Refusals are
 * not kept for replays: nothing happened, and asking again is the better answer.
 */
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { EnvironmentRecord } from '../contract/environments.ts'
import { CommitUnknownError } from '../store/database-error.ts'
import { type EnvironmentRow, findEnvironment } from '../store/environments.ts'
import { findReply, type StoredReply, storeReply } from '../store/idempotency.ts'
import { listPendingRenewals, type RenewalRow } from '../store/renewals.ts'
import { environmentView } from '../views/environment-view.ts'
import type { Call, Reply } from './call.ts'
import { callKeyOf } from './call-key.ts'
import type { CommandDependencies } from './dependencies.ts'
import { takeKeyOrReply } from './execute.ts'
import { settleRenewal } from './finish-renewal.ts'
import { replay } from './replay.ts'
import { type WrittenRenewal, writeRenewalThrough } from './write-renewal-through.ts'

const UNKNOWN_COMMITS = 3

/**
 * Gives a preview `ttlHours` from now, without recreating it.
 * @throws DomainError `environment_not_found`, `forbidden`, `not_a_preview`, `environment_expired`, `operation_in_progress`
 * while it is being deleted, `invalid_phase` when it is, `store_unavailable`, `write_conflict`
 */
export const renewEnvironment = async (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  ttlHours: number,
): Promise<Reply<200, EnvironmentRecord>> => {
  const key = callKeyOf(call)
  // A stored answer of this route has its status and body.
  const again = (stored: StoredReply): Reply<200, EnvironmentRecord> =>
    replay(stored, key, { sealingKey: deps.sealingKey, own: false }) as Reply<200, EnvironmentRecord>

  const stored = key === undefined ? undefined : await findReply(deps.database, key)
  if (stored !== undefined) return again(stored)
  const written = await writeRenewalThrough(deps, call, path, ttlHours)
  for (let unknown = 1; ; unknown++) {
    try {
      const finished = await finish(deps, call, path, written)
      return 'fingerprint' in finished ? again(finished) : finished
    } catch (error) {
      // Finishing twice is finishing once: the renewal's state decides.
      if (!(error instanceof CommitUnknownError) || unknown >= UNKNOWN_COMMITS) throw error
    }
  }
}

/** Records what the store holds; answers the reply, or the one that another call with the key was given meanwhile. */
const finish = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  { renewal, generation, replacedExpiresAt }: WrittenRenewal,
): Promise<Reply<200, EnvironmentRecord> | StoredReply> =>
  deps.database.transaction(async sql => {
    const key = callKeyOf(call)
    const stored = key === undefined ? undefined : await takeKeyOrReply(sql, key)
    // What the store showed before ours was applied too, although its caller was never told: a crash, or it is slower.
    for (const earlier of await listPendingRenewals(sql, renewal.environmentRow, renewal.id))
      if (earlier.expiresAt.toISOString() === replacedExpiresAt) await settleRenewal(sql, earlier, generation)
    await settleRenewal(sql, renewal, generation)
    if (stored !== undefined) return stored
    const environment = await findEnvironment(sql, path)
    const body = Buffer.from(JSON.stringify(environmentView(asRenewed(environment, renewal))))
    if (key !== undefined) await storeReply(sql, key, { status: 200, body })
    return { status: 200, body }
  })

/** The caller is told of their own renewal, also when another one has overtaken it. */
const asRenewed = (environment: EnvironmentRow | undefined, renewal: RenewalRow): EnvironmentRow => {
  if (environment === undefined) throw new Error('A renewed environment has no row')
  return { ...environment, ttlHours: renewal.ttlHours, expiresAt: renewal.expiresAt }
}
