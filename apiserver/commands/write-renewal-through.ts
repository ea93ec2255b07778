/** The first half of a renewal: from the call to a resource that has the new expiry. */
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from '../../crds/conditions.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import { isStoreError, type StoreError } from '../../runtime/store/store-error.ts'
import { hasPendingIntents } from '../store/intents.ts'
import { abandonRenewal, insertRenewal, type RenewalRow } from '../store/renewals.ts'
import type { Call } from './call.ts'
import { callMetadata } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { type AccessedEnvironment, accessEnvironment, assertAlive, operationInProgress } from './environment-access.ts'

/** A renewal that the store holds, and what it replaced there. */
export interface WrittenRenewal {
  readonly renewal: RenewalRow
  readonly generation: number
  readonly replacedExpiresAt: string | undefined
}

const MAX_PATCHES = 8
const POLL_MS = 20

const expired = (environmentId: string): DomainError =>
  new DomainError('environment_expired', `Cannot renew "${environmentId}": it has expired and is about to be deleted`)

/** @throws DomainError why it cannot be renewed, as far as the rows tell */
const assertRenewable = (environment: AccessedEnvironment): void => {
  const { open, environmentId, kind, expiresAt, now } = environment
  if (kind !== 'preview')
    throw new DomainError('not_a_preview', `Cannot renew "${environmentId}": it is ${kind}, only previews expire`)
  if (open?.kind === 'delete_environment') throw operationInProgress(open)
  assertAlive('renew', environment)
  if (expiresAt !== null && expiresAt <= now) throw expired(environmentId)
}

type BoundEnvironment = AccessedEnvironment & { readonly uid: string }

/** The environment once nothing is on its way to the store any more. @throws DomainError `store_unavailable` if that takes too long */
const awaitSettled = async (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<BoundEnvironment> => {
  const giveUpAt = performance.now() + deps.settings.renewWaitMs
  for (;;) {
    const environment = await deps.database.transaction(async sql => {
      const found = await accessEnvironment(sql, call, path)
      assertRenewable(found)
      return { ...found, waits: await hasPendingIntents(sql, found.id) }
    })
    const { uid } = environment
    if (uid !== null && !environment.waits) return { ...environment, uid }
    if (performance.now() >= giveUpAt)
      throw new DomainError('store_unavailable', 'Earlier changes are still on their way to the resource store', {
        retryAfterSeconds: 1,
      })
    deps.wakeDispatcher(environment.id)
    await sleep(POLL_MS)
  }
}

/**
 * Notes a renewal and patches the store with it. The note is made after the look and before the patch, and a patch that
 * met another one is noted anew; so the renewals that were applied are in the order of their numbers.
 * @throws DomainError as `renewEnvironment`
 */
export const writeRenewalThrough = async (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  ttlHours: number,
): Promise<WrittenRenewal> => {
  for (let patches = 0; patches < MAX_PATCHES; patches++) {
    const environment = await awaitSettled(deps, call, path)
    const seen = await deps.store
      .get(environmentType, { namespace: environment.namespace, name: environment.resourceName })
      .catch(toUnavailable)
    assertStillThere(environment, seen)
    const renewal = await deps.database.transaction(sql =>
      insertRenewal(sql, {
        environmentRow: environment.id,
        ttlHours,
        actor: call.principal.subject,
        requestId: call.requestId,
        metadata: callMetadata(call, { ttl_hours: ttlHours }),
      }),
    )
    const generation = await patchExpiry(deps, renewal, seen)
    if (generation !== undefined) return { renewal, generation, replacedExpiresAt: seen.spec.expiresAt }
    await deps.database.transaction(sql => abandonRenewal(sql, renewal.id))
  }
  throw new DomainError('write_conflict', 'The environment keeps changing; read it and try again')
}

/** @throws DomainError when the resource shows that there is nothing to renew any more */
function assertStillThere(environment: BoundEnvironment, seen: Environment | undefined): asserts seen is Environment {
  const { uid, environmentId, now } = environment
  if (seen?.metadata.uid !== uid || seen.metadata.deletionTimestamp !== undefined) throw operationInProgress()
  const expiresAt = seen.spec.expiresAt ?? seen.status?.expiresAt
  const isExpired = conditionOf(seen.status?.conditions, 'Expired')?.status === 'True'
  if (isExpired || (expiresAt !== undefined && new Date(expiresAt) <= now)) throw expired(environmentId)
}

/** The generation with the new expiry; undefined: the resource changed since it was seen, nothing was written. */
const patchExpiry = async (
  { store }: CommandDependencies,
  renewal: RenewalRow,
  seen: Environment,
): Promise<number | undefined> => {
  const key: ResourceKey = { namespace: seen.metadata.namespace, name: seen.metadata.name }
  const spec = { ttlHours: renewal.ttlHours, expiresAt: renewal.expiresAt.toISOString() }
  const { uid, resourceVersion } = seen.metadata
  try {
    const metadata = { annotations: { [ANNOTATIONS.actor]: renewal.actor } }
    const patched = await store.patch(environmentType, key, { metadata, spec }, { uid, resourceVersion })
    return patched.metadata.generation
  } catch (error) {
    if (isStoreError(error, 'Conflict', 'NotFound')) return undefined
    // Invalid is definite too, but a renewal that a rule refuses is a mistake of ours: let it be seen.
    return toUnavailable(error)
  }
}

/** The patch may have arrived: the renewal stays pending, and whoever settles it looks. */
const toUnavailable = (error: unknown): never => {
  if (!isStoreError(error, 'Unavailable', 'TooManyRequests')) throw error
  throw unavailable(error)
}

const unavailable = (cause: StoreError): DomainError =>
  new DomainError('store_unavailable', 'The resource store cannot be used right now; try again', {
    retryAfterSeconds: 1,
    cause,
  })
