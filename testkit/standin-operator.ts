/**
 * Does to resources what the operator does to them, without any Postgres: reports each request, leaves DeletionRecords,
 * releases finalizers. For tests of what stands before and behind the operator; the real one is tested with a real host.
 */
import { TIME_TO_LIVE_ENDED } from '../crds/conditions.ts'
import { deletionRecordName } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment, EnvironmentStatus } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../crds/metadata.ts'
import { keyOf, type ResourceKey } from '../lib/model/resource.ts'
import { Cache } from '../runtime/controller/cache.ts'
import { Controller } from '../runtime/controller/controller.ts'
import { Reflector } from '../runtime/controller/reflector.ts'
import { silentLog } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { isStoreError } from '../runtime/store/store-error.ts'

export const OPERATOR_NAMESPACE = 'svc-system'

/** What the operator would report of an environment that does as it is told. */
export const reportOf = ({ spec, metadata }: Environment): EnvironmentStatus => ({
  phase: metadata.deletionTimestamp === undefined ? (spec.suspended === true ? 'suspended' : 'ready') : 'deleting',
  observedGeneration: metadata.generation,
  ...(spec.request && {
    operation: {
      id: spec.request.id,
      seq: spec.request.seq,
      outcome: spec.request.verb === 'delete' ? 'running' : 'succeeded',
      attempts: 1,
    },
  }),
})

/** Why the environment is deleted, as the operator reads it. */
const causeOf = ({ spec, status }: Environment): string => {
  if (spec.request?.verb === 'delete') return `request:${spec.request.id}`
  return status?.conditions?.some(({ type, reason }) => type === 'Expired' && reason === TIME_TO_LIVE_ENDED)
    ? 'ttl'
    : 'external'
}

/** Leaves the record of an environment that is deleted; harmless when it is there. */
export const leaveRecord = async (store: ResourceStore, environment: Environment): Promise<void> => {
  const { metadata, spec } = environment
  const isRetained = spec.deletionPolicy === 'Retain'
  try {
    await store.create(deletionRecordType, {
      namespace: OPERATOR_NAMESPACE,
      name: deletionRecordName(metadata.uid),
      spec: {
        uid: metadata.uid,
        name: metadata.name,
        namespace: metadata.namespace,
        organizationId: spec.organizationId,
        projectId: spec.projectId,
        environmentId: spec.environmentId,
        cause: causeOf(environment),
        ...(metadata.lastManager === undefined ? {} : { actor: metadata.lastManager }),
        deletedAt: new Date().toISOString(),
        retained: isRetained,
        ...(isRetained ? { retainedAt: `/trash/${metadata.uid}` } : {}),
      },
    })
  } catch (error) {
    if (!isStoreError(error, 'AlreadyExists')) throw error
  }
}

/** Lets a deleting environment go, the way the operator does: the record first, then the finalizer. */
export const letGo = async (store: ResourceStore, environment: Environment): Promise<void> => {
  await leaveRecord(store, environment)
  const { metadata } = environment
  const finalizers = metadata.finalizers.filter(finalizer => finalizer !== ENVIRONMENT_FINALIZER)
  const { uid, resourceVersion } = metadata
  await store.patch(environmentType, keyOf(environment), { metadata: { finalizers } }, { uid, resourceVersion })
}

export interface StandinOperator {
  stop(): Promise<void>
}

/** Starts it on a store. `paused` says which names it leaves alone for now. */
export const startStandinOperator = (
  store: ResourceStore,
  paused: (key: ResourceKey) => boolean = () => false,
): StandinOperator => {
  const cache = new Cache<Environment>({ log: silentLog })
  const reflector = new Reflector({ store, type: environmentType, sink: cache, log: silentLog })
  const controller = new Controller({
    name: 'standin-operator',
    log: silentLog,
    reconcile: async key => {
      const environment = cache.get(key)
      if (environment === undefined) return
      if (paused(key)) return { requeueAfterMs: 20 }
      const { uid, resourceVersion, deletionTimestamp } = environment.metadata
      if (environment.status?.observedGeneration !== environment.metadata.generation)
        await store.patchStatus(environmentType, key, { ...reportOf(environment) }, { uid, resourceVersion })
      else if (deletionTimestamp !== undefined) await letGo(store, environment)
      return
    },
  })
  controller.watch(cache)
  reflector.start()
  controller.start()
  return {
    stop: async () => {
      await controller.stop()
      await reflector.stop()
    },
  }
}
