/** How an instance's Postgres stops, and how it is known that it stopped well. */
import { ANNOTATIONS, STOP_WITNESS_FINALIZER } from '../../../crds/metadata.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import { podLabels } from './build-stateful-set.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import type { InstanceNames } from './instance-names.ts'
import { exitOf, hasRun } from './judge-pod.ts'
import type { Pod } from './object-types.ts'
import type { Wanted } from './wanted.ts'
import { isOurPod } from './whose.ts'

const finalizersOf = (pod: Pod): readonly string[] => pod.metadata?.finalizers ?? []

/**
 * Has the pod stay, stopped, until its exit code was read: kubelet tells it once, and the operator may be away just then.
 * Only for a pod whose server ran; only before it is asked to stop.
 */
export const witnessStop = async (world: ClusterWorld, names: InstanceNames, pod: Pod): Promise<void> => {
  if (pod.metadata?.deletionTimestamp !== undefined || !hasRun(pod)) return
  if (finalizersOf(pod).includes(STOP_WITNESS_FINALIZER)) return
  await patchFinalizers(world, names, pod, [...finalizersOf(pod), STOP_WITNESS_FINALIZER])
}

/** Writes down how a server ended and lets its pod go. @returns whether there was anything to do */
export const recordStop = async (world: ClusterWorld, names: InstanceNames, pod: Pod): Promise<boolean> => {
  if (pod.metadata?.deletionTimestamp === undefined || !finalizersOf(pod).includes(STOP_WITNESS_FINALIZER)) return false
  const exit = exitOf(pod)
  if (exit === undefined && hasRun(pod)) return false
  const claim = world.claims.get(keyIn(names, names.claim))
  if (claim !== undefined && exit !== undefined)
    await world.claims.merge(keyIn(names, names.claim), {
      metadata: { uid: claim.metadata.uid, annotations: { [ANNOTATIONS.lastStop]: exit } },
    })
  await releasePod(world, names, pod)
  return true
}

/** Takes our finalizer from a pod. Harmless when it is gone. */
export const releasePod = async (world: ClusterWorld, names: InstanceNames, pod: Pod): Promise<void> => {
  if (!finalizersOf(pod).includes(STOP_WITNESS_FINALIZER)) return
  const rest = finalizersOf(pod).filter(finalizer => finalizer !== STOP_WITNESS_FINALIZER)
  await patchFinalizers(world, names, pod, rest)
}

const patchFinalizers = async (
  world: ClusterWorld,
  names: InstanceNames,
  { metadata }: Pod,
  finalizers: readonly string[],
): Promise<void> => {
  try {
    // A merge patch replaces the list: bound to the version that was read.
    await world.pods.merge(keyIn(names, names.pod), {
      metadata: { uid: metadata?.uid, resourceVersion: metadata?.resourceVersion, finalizers },
    })
  } catch (error) {
    // Gone; or another one has its name, which shows as a conflict of uids.
    if (!isStoreError(error, 'NotFound')) throw error
  }
}

/** Forgets how the last server ended, when another one is about to start. */
export const forgetStop = async (world: ClusterWorld, names: InstanceNames): Promise<void> => {
  const claim = world.claims.get(keyIn(names, names.claim))
  if (claim?.metadata.annotations[ANNOTATIONS.lastStop] === undefined) return
  await world.claims.merge(keyIn(names, names.claim), {
    metadata: { uid: claim.metadata.uid, annotations: { [ANNOTATIONS.lastStop]: null } },
  })
}

/** A pod whose labels were changed is let go by its StatefulSet, which then cannot make another of the same name. */
export const relabelPod = async (world: ClusterWorld, names: InstanceNames, wanted: Wanted): Promise<void> => {
  const labels = podLabels(names, wanted)
  const key = keyIn(names, names.pod)
  const pod = world.pods.get(key) ?? (await world.pods.read(key))
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return
  const differs = Object.entries(labels).some(([name, value]) => pod.metadata.labels[name] !== value)
  if (!differs || !isOurPod(pod, names)) return
  await world.pods.merge(key, { metadata: { uid: pod.metadata.uid, labels } })
  world.repaired(names, { kind: 'Pod', name: names.pod, how: 'put right' })
}
