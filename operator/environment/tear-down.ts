/** How an environment goes: its data first, the record of it next, the resource last. Each step may be repeated. */
import { conditionOf, TIME_TO_LIVE_ENDED } from '../../crds/conditions.ts'
import { type DeletionRecordSpec, deletionRecordName } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER, environmentLabels } from '../../crds/metadata.ts'
import type { DeletionPolicy } from '../../lib/model/environment.ts'
import { keyOf } from '../../lib/model/resource.ts'
import type { Credentials } from '../../runtime/credentials/credentials.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { ConditionError, type Destroyed, type Host } from '../host/host.ts'
import type { Events } from './events.ts'
import type { Namespaces } from './namespaces.ts'
import { credentialOwner, instanceRef } from './observe.ts'
import { onSameGround } from './same-ground.ts'
import { deletionStory } from './story.ts'

export interface TearDownPorts {
  readonly store: ResourceStore
  readonly credentials: Credentials
  readonly host: Host
  /** Where DeletionRecords go: nothing can be made in a namespace that is being deleted. */
  readonly recordsNamespace: string
  /** Left out where namespaces are mere names. */
  readonly namespaces?: Namespaces | undefined
  /** Who is told what became of the data, where there is somebody to tell. */
  readonly events?: Events | undefined
}

/**
 * @returns whether the resource was let go; false: a process is still there, ask again
 * @throws ConditionError what it waits for, where that takes longer than moments
 */
export const tearDown = async (
  environment: Environment,
  policy: DeletionPolicy,
  ports: TearDownPorts,
  nowMs: number,
): Promise<boolean> => {
  const destroyed = await unlessLeaving(
    () => ports.host.destroy(instanceRef(environment), policy),
    () => leftBehind(environment, policy, ports.host),
    environment,
    ports.namespaces,
  )
  const { waitsFor } = destroyed
  if (waitsFor !== undefined) throw new ConditionError(waitsFor.condition, waitsFor.reason, waitsFor.message)
  if (!destroyed.done) return false
  ports.events?.tell(instanceRef(environment), deletionStory(destroyed.retainedAt))
  const forget = (): Promise<void> => ports.credentials.delete(credentialOwner(environment))
  await unlessLeaving(forget, async () => undefined, environment, ports.namespaces)
  await leaveRecord(environment, destroyed, ports, nowMs)
  await release(environment, ports.store)
  return true
}

/**
 * A namespace that is being deleted takes our right to work in it along, and cannot be given it again; everything in it goes
 * by itself. Then it is only watched going.
 */
const unlessLeaving = async <T>(
  work: () => Promise<T>,
  instead: () => Promise<T>,
  { metadata }: Environment,
  namespaces: Namespaces | undefined,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!isStoreError(error, 'Forbidden') || namespaces === undefined) throw error
    const namespace = await namespaces.look(metadata.namespace, { fresh: true })
    if (namespace?.terminating === false) throw error
    return await instead()
  }
}

/** What a namespace that goes has left of an instance so far. Its volume was told to stay while the claim was there. */
const leftBehind = async (environment: Environment, policy: DeletionPolicy, host: Host): Promise<Destroyed> => {
  const { state } = await host.observe(instanceRef(environment))
  const retained = policy === 'Retain' && environment.status?.everReady === true
  const retainedAt = `the volumes of the namespace ${environment.metadata.namespace}`
  return { done: state === 'absent', ...(retained ? { retainedAt } : {}) }
}

/**
 * Takes our finalizer away. Other parties' stay.
 * @throws StoreError `Conflict` when what was judged changed since
 */
export const release = async (environment: Environment, store: ResourceStore): Promise<void> => {
  const rest = environment.metadata.finalizers.filter(finalizer => finalizer !== ENVIRONMENT_FINALIZER)
  try {
    await onSameGround(store, environment, ground =>
      store.patch(environmentType, keyOf(environment), { metadata: { finalizers: rest } }, ground),
    )
  } catch (error) {
    // Let go before a crash, and then by the store.
    if (!isStoreError(error, 'NotFound')) throw error
  }
}

const leaveRecord = async (
  environment: Environment,
  destroyed: Destroyed,
  { store, recordsNamespace }: TearDownPorts,
  nowMs: number,
): Promise<void> => {
  const name = deletionRecordName(environment.metadata.uid)
  try {
    await store.create(deletionRecordType, {
      namespace: recordsNamespace,
      name,
      labels: environmentLabels(environment.spec),
      spec: recordOf(environment, destroyed, nowMs),
    })
  } catch (error) {
    // The name carries the uid: it is the record of this very environment, from before a crash.
    if (!isStoreError(error, 'AlreadyExists')) throw error
  }
}

/** What is left behind. Pure. */
export const recordOf = (environment: Environment, destroyed: Destroyed, nowMs: number): DeletionRecordSpec => {
  const { metadata, spec } = environment
  const cause = causeOf(environment)
  return {
    uid: metadata.uid,
    name: metadata.name,
    namespace: metadata.namespace,
    organizationId: spec.organizationId,
    projectId: spec.projectId,
    environmentId: spec.environmentId,
    cause,
    ...(cause === 'external' && metadata.lastManager !== undefined ? { actor: metadata.lastManager } : {}),
    deletedAt: new Date(nowMs).toISOString(),
    retained: destroyed.retainedAt !== undefined,
    ...(destroyed.retainedAt === undefined ? {} : { retainedAt: destroyed.retainedAt }),
    ...(destroyed.retainedUntil === undefined ? {} : { retainedUntil: destroyed.retainedUntil }),
  }
}

/** Who wanted the deletion: a request of ours, the sweep, or somebody else. */
const causeOf = ({ spec, status }: Environment): string => {
  if (spec.request?.verb === 'delete') return `request:${spec.request.id}`
  return conditionOf(status?.conditions, 'Expired')?.reason === TIME_TO_LIVE_ENDED ? 'ttl' : 'external'
}
