/** How an instance goes: its pod first, then what belongs to it, its data last, and only if that was asked for. */
import { ANNOTATIONS, GROUP, LABELS } from '../../../crds/metadata.ts'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import type { Destroyed } from '../host.ts'
import { type ClusterWorld, certainObjectsOf, isOurPod, keyIn } from './cluster-world.ts'
import { isInitialized, keepVolume } from './ensure-claim.ts'
import type { InstanceNames } from './instance-names.ts'
import { type Claim, definitions, namespaces, type Pod, secrets } from './object-types.ts'
import { releasePod } from './stop-instance.ts'

/** A server whose data goes with it need not write it out first. */
const HURRIED_GRACE_SECONDS = 10
const DAY_MS = 86_400_000

/** One step; `done` is false while a pod or the claim is still there. */
export const destroyInstance = async (
  world: ClusterWorld,
  names: InstanceNames,
  policy: DeletionPolicy,
): Promise<Destroyed> => {
  const { statefulSet, service, claim } = await certainObjectsOf(world, names)
  // First: whatever becomes of the rest, by whose hand ever, what is to be kept is kept.
  if (policy === 'Retain' && claim !== undefined && isInitialized(claim)) await keepVolume(world, claim)
  const pod = await podLeft(world, names)
  if (statefulSet !== undefined && statefulSet.metadata?.deletionTimestamp === undefined)
    await world.statefulSets.delete(keyIn(names, names.name), { uid: statefulSet.metadata?.uid ?? '' })
  if (pod !== undefined) {
    await endPod(world, names, pod, policy)
    return { done: false }
  }
  if (statefulSet !== undefined) return { done: false }

  if (service !== undefined && service.metadata?.deletionTimestamp === undefined)
    await world.services.delete(keyIn(names, names.name), { uid: service.metadata?.uid ?? '' })
  const secret = await world.objects.get(secrets, keyIn(names, names.files))
  if (secret?.metadata?.uid !== undefined)
    await world.objects.delete(secrets, keyIn(names, names.files), { uid: secret.metadata.uid })
  return dealWithClaim(world, names, claim ?? (await world.claims.read(keyIn(names, names.claim))), policy)
}

/** Asked of the API server itself before any data is touched: a cache may be behind. */
const podLeft = async (world: ClusterWorld, names: InstanceNames): Promise<Pod | undefined> => {
  const key = keyIn(names, names.pod)
  const pod = world.pods.get(key) ?? (await world.pods.read(key))
  return isOurPod(pod, names) ? pod : undefined
}

const endPod = async (world: ClusterWorld, names: InstanceNames, pod: Pod, policy: DeletionPolicy): Promise<void> => {
  const hurried = policy === 'Delete'
  const { deletionTimestamp, uid } = pod.metadata ?? {}
  if (deletionTimestamp === undefined || (hurried && graceOf(pod) > HURRIED_GRACE_SECONDS))
    await world.pods.delete(keyIn(names, names.pod), {
      uid: uid ?? '',
      ...(hurried ? { gracePeriodSeconds: HURRIED_GRACE_SECONDS } : {}),
    })
  // Nobody asks any more how it stopped; and a pod that kubelet is done with would wait for us.
  await releasePod(world, names, pod)
}

const graceOf = ({ metadata }: Pod): number =>
  (metadata as { deletionGracePeriodSeconds?: number } | undefined)?.deletionGracePeriodSeconds ?? 0

const dealWithClaim = async (
  world: ClusterWorld,
  names: InstanceNames,
  claim: Claim | undefined,
  policy: DeletionPolicy,
): Promise<Destroyed> => {
  if (claim === undefined) return { done: true }
  const key = keyIn(names, names.claim)
  const kept = claim.metadata?.annotations?.[ANNOTATIONS.retainedUntil]
  const [going, spared] = await Promise.all([isNamespaceGoing(world, names.namespace), isDefinitionGoing(world)])
  // The definition of environments is being deleted, and with it every one of them: nobody asked for that of this one.
  if (policy === 'Delete' && !spared) {
    // In a namespace that goes the claim goes by itself.
    if (going) return { done: true }
    if (claim.metadata?.deletionTimestamp === undefined)
      await world.claims.delete(key, { uid: claim.metadata?.uid ?? '' })
    return { done: (await world.claims.read(key)) === undefined }
  }
  if (!isInitialized(claim) && !spared) return dealWithClaim(world, names, claim, 'Delete')
  await keepVolume(world, claim)
  // Without its claim the volume is what is left.
  if (going || claim.metadata?.deletionTimestamp !== undefined)
    return { done: true, retainedAt: `persistentvolume/${claim.spec?.volumeName ?? ''}` }
  const until = kept ?? new Date(world.now().getTime() + world.settings.retentionDays * DAY_MS).toISOString()
  if (kept === undefined)
    await world.claims.merge(key, {
      metadata: {
        uid: claim.metadata?.uid,
        labels: { [LABELS.retained]: 'true' },
        annotations: { [ANNOTATIONS.retainedUntil]: until },
      },
    })
  return { done: true, retainedAt: `persistentvolumeclaim/${names.namespace}/${names.claim}`, retainedUntil: until }
}

const isNamespaceGoing = async ({ objects }: ClusterWorld, name: string): Promise<boolean> =>
  (await objects.get(namespaces, { namespace: '', name }))?.metadata?.deletionTimestamp !== undefined

const isDefinitionGoing = async ({ objects }: ClusterWorld): Promise<boolean> =>
  (await objects.get(definitions, { namespace: '', name: `environments.${GROUP}` }))?.metadata?.deletionTimestamp !==
  undefined
