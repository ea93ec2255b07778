/** How an instance goes: its pod first, then what belongs to it, its data last, and only if that was asked for. */
import { ANNOTATIONS, GROUP, LABELS } from '../../../crds/metadata.ts'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import type { Destroyed, WaitsFor } from '../host.ts'
import { isInitialized } from './build-claim.ts'
import { type ClusterWorld, certainObjectsOf, keyIn, readStatefulSet } from './cluster-world.ts'
import type { InstanceNames } from './instance-names.ts'
import {
  claimWaitsFor,
  isClaimGoing,
  isClaimLate,
  isNodeSuspect,
  podWaitsFor,
  statefulSetWaitsFor,
} from './judge-deletion.ts'
import { isLost } from './judge-pod.ts'
import { isKept } from './judge-volume.ts'
import { settleVolume, volumeFor } from './keep-volume.ts'
import { type Claim, definitions, namespaces, nodes, type Pod, pods, secrets, type Volume } from './object-types.ts'
import { releasePod } from './stop-instance.ts'
import { isOurPod } from './whose.ts'

/** A server whose data goes with it need not write it out first. */
const HURRIED_GRACE_SECONDS = 10
const DAY_MS = 86_400_000

/** Where an instance's data is. */
interface Data {
  readonly claim: Claim | undefined
  readonly volume: Volume | undefined
}

/** One step; `done` is false while a pod or the claim is still there. */
export const destroyInstance = async (
  world: ClusterWorld,
  names: InstanceNames,
  policy: DeletionPolicy,
): Promise<Destroyed> => {
  const { service, claim, ...seen } = await certainObjectsOf(world, names)
  // Its end is seen; only then is anybody asked whether all is gone.
  const serviceGoes = service === undefined || service.metadata?.deletionTimestamp !== undefined
  const nothingElse = seen.statefulSet === undefined && seen.pod === undefined && serviceGoes
  if (policy === 'Delete' && nothingElse && isClaimGoing(claim, world.now().getTime())) return notDone(undefined)
  // It would make its pod again and again. While that ends there is nothing else to do.
  const ends = seen.pod?.metadata?.deletionTimestamp !== undefined
  const statefulSet = seen.statefulSet ?? (ends ? undefined : await readStatefulSet(world, names))
  await settleFate(world, names, { claim, volume: await volumeFor(world, names, claim) }, policy)
  const pod = await podLeft(world, names)
  if (statefulSet !== undefined && statefulSet.metadata?.deletionTimestamp === undefined)
    await world.statefulSets.delete(keyIn(names, names.name), { uid: statefulSet.metadata?.uid ?? '' })
  if (pod !== undefined) {
    await endPod(world, names, pod, policy)
    return notDone(await whyPodStays(world, names))
  }
  if (statefulSet !== undefined) return notDone(statefulSetWaitsFor(statefulSet))

  if (service !== undefined && service.metadata?.deletionTimestamp === undefined)
    await world.services.delete(keyIn(names, names.name), { uid: service.metadata?.uid ?? '' })
  const secret = await world.objects.get(secrets, keyIn(names, names.files))
  if (secret?.metadata?.uid !== undefined)
    await world.objects.delete(secrets, keyIn(names, names.files), { uid: secret.metadata.uid })
  const left = claim ?? (await world.claims.read(keyIn(names, names.claim)))
  return dealWithData(world, names, { claim: left, volume: await volumeFor(world, names, left) }, policy)
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

const notDone = (waitsFor: WaitsFor | undefined): Destroyed =>
  waitsFor === undefined ? { done: false } : { done: false, waitsFor }

const whyPodStays = async (world: ClusterWorld, names: InstanceNames): Promise<WaitsFor | undefined> => {
  const pod = world.pods.get(keyIn(names, names.pod))
  const now = world.now().getTime()
  if (pod?.metadata.deletionTimestamp === undefined) return undefined
  const name = pod.spec.nodeName ?? ''
  const lost = isNodeSuspect(pod, now) && isLost(await world.objects.get(nodes, { namespace: '', name }))
  return podWaitsFor(pod, now, lost ? name : undefined)
}

const whyClaimStays = async (world: ClusterWorld, claim: Claim): Promise<WaitsFor | undefined> => {
  const now = world.now().getTime()
  const { namespace = '', name } = claim.metadata ?? {}
  const mounts = ({ spec }: Pod): boolean =>
    spec?.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === name) === true
  const users = isClaimLate(claim, now) ? (await world.objects.list(pods, { namespace })).items.filter(mounts) : []
  return claimWaitsFor(
    claim,
    now,
    users.map(({ metadata }) => metadata?.name ?? ''),
  )
}

const graceOf = ({ metadata }: Pod): number =>
  (metadata as { deletionGracePeriodSeconds?: number } | undefined)?.deletionGracePeriodSeconds ?? 0

const dealWithData = async (
  world: ClusterWorld,
  names: InstanceNames,
  { claim, volume }: Data,
  policy: DeletionPolicy,
): Promise<Destroyed> => {
  const empty = claim !== undefined && !isInitialized(claim)
  // The definition of environments may be going, and with it every one of them: nobody asked for that of this one.
  const goes = (policy === 'Delete' || empty) && !(await isDefinitionGoing(world))
  if (claim === undefined) return goes ? { done: true } : keepLoneVolume(world, names, volume)
  const key = keyIn(names, names.claim)
  const asked = claim.metadata?.deletionTimestamp !== undefined
  if (goes) {
    const there = asked ? await world.claims.read(key) : claim
    if (there === undefined) return { done: true }
    // It goes by itself, and later than we do: what cares for claims has to know then that nobody is to be spared anything.
    if (await isNamespaceGoing(world, names.namespace)) {
      await abandon(world, names, there)
      return { done: true }
    }
    if (!asked) await world.claims.delete(key, { uid: claim.metadata?.uid ?? '' })
    const left = asked ? there : await world.claims.read(key)
    return left === undefined ? { done: true } : notDone(await whyClaimStays(world, left))
  }
  // Without its claim the volume is what is left.
  if (asked || (await isNamespaceGoing(world, names.namespace))) return keepLoneVolume(world, names, volume)
  const kept = claim.metadata?.annotations?.[ANNOTATIONS.retainedUntil]
  const retainedUntil = kept ?? endOfRetention(world)
  await settleVolume(world, names, volume, { policy: 'Retain', retainedUntil })
  if (kept === undefined)
    await world.claims.merge(key, {
      metadata: {
        uid: claim.metadata?.uid,
        labels: { [LABELS.retained]: 'true' },
        annotations: { [ANNOTATIONS.retainedUntil]: retainedUntil },
      },
    })
  return { done: true, retainedAt: `persistentvolumeclaim/${names.namespace}/${names.claim}`, retainedUntil }
}

const abandon = async (world: ClusterWorld, names: InstanceNames, { metadata }: Claim): Promise<void> => {
  try {
    const annotations = { [ANNOTATIONS.abandoned]: 'true' }
    await world.claims.merge(keyIn(names, names.claim), { metadata: { uid: metadata?.uid, annotations } })
  } catch (error) {
    if (!isStoreError(error, 'NotFound')) throw error
  }
}

/** What is left of data whose claim went by another hand. Nothing, where its volume goes too. */
const keepLoneVolume = async (
  world: ClusterWorld,
  names: InstanceNames,
  volume: Volume | undefined,
): Promise<Destroyed> => {
  if (volume === undefined || !isKept(volume)) return { done: true }
  const retainedUntil = volume.metadata?.annotations?.[ANNOTATIONS.retainedUntil] ?? endOfRetention(world)
  await settleVolume(world, names, volume, { policy: 'Retain', retainedUntil })
  return { done: true, retainedAt: `persistentvolume/${volume.metadata?.name ?? ''}`, retainedUntil }
}

const endOfRetention = ({ now, settings }: ClusterWorld): string =>
  new Date(now().getTime() + settings.retentionDays * DAY_MS).toISOString()

/**
 * Has the volume know its fate before anything else happens: whatever becomes of the rest, by whose hand ever. One that is kept
 * goes only on a recorded request, and never because all definitions go.
 */
const settleFate = async (
  world: ClusterWorld,
  names: InstanceNames,
  { claim, volume }: Data,
  policy: DeletionPolicy,
): Promise<void> => {
  if (volume === undefined) return
  const empty = claim !== undefined && !isInitialized(claim)
  const lost = claim === undefined && !isKept(volume)
  if (policy === 'Retain' && !empty && !lost) await settleVolume(world, names, volume, { policy })
  else if (isKept(volume) && !(await isDefinitionGoing(world)))
    await settleVolume(world, names, volume, { policy: 'Delete' })
}

const isNamespaceGoing = async ({ objects }: ClusterWorld, name: string): Promise<boolean> =>
  (await objects.get(namespaces, { namespace: '', name }))?.metadata?.deletionTimestamp !== undefined

const isDefinitionGoing = async ({ objects }: ClusterWorld): Promise<boolean> =>
  (await objects.get(definitions, { namespace: '', name: `environments.${GROUP}` }))?.metadata?.deletionTimestamp !==
  undefined
