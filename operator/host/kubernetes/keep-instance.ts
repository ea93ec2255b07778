/**
 * Keeps one instance as it was asked for, whoever changes it: puts its objects back, restarts its pod when that is due, makes
 * a server that answers what it should be, writes down how one ended. Level-based; called for every event and now and then.
 */
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import { judgeLastWords } from '../../../runtime/postgres/last-words.ts'
import { ConditionError, type InstanceFailure } from '../host.ts'
import { isInitialized } from './build-claim.ts'
import { type ClusterWorld, certainObjectsOf, keyIn, readStatefulSet } from './cluster-world.ts'
import { claimProblem, ensureClaim, growClaim } from './ensure-claim.ts'
import { ensureService, ensureStatefulSet } from './ensure-instance.ts'
import { externalHost, isUnproven } from './external-door.ts'
import { jittered } from './jittered.ts'
import { failureIn, hasRun, isLost, isUnresponsive, nodeLost, runOf, unscheduledPatienceMs } from './judge-pod.ts'
import { keepServer, RELOAD_EVERY_MS } from './keep-server.ts'
import { keepVolume } from './keep-volume.ts'
import type { KnownInstance } from './known-instance.ts'
import { nodes, type Pod, type StatefulSet } from './object-types.ts'
import { isAbandoned, isRetained } from './observation.ts'
import { readFilesSecret, remainsOf, wasServed } from './served-data.ts'
import { ensureServerFiles } from './server-files.ts'
import { recordStop, relabelPod } from './stop-instance.ts'
import { figuresText, parseWanted, type Wanted } from './wanted.ts'

/** How often the Secret with a server's files is looked at, which nobody watches. */
export const FILES_EVERY_MS = 3_600_000
const OUTSIDE_EVERY_MS = 60_000
const POD_MISSING_MS = 2_000
const POD_NOT_CREATED_MS = 20_000
const CONTAINER_LATE_MS = 60_000
/** A node is asked about its pods' silence this often. */
const NODE_EVERY_MS = 10_000

/** @returns when to look again, in milliseconds; Infinity: when something happens */
export const keepInstance = async (world: ClusterWorld, instance: KnownInstance): Promise<number> => {
  const { names } = instance
  const { pod, claim, ...seen } = await certainObjectsOf(world, names)
  // Whose label was taken away is not seen any more, and there all the same.
  const hidden = seen.statefulSet === undefined && !instance.destroying && (pod !== undefined || claim !== undefined)
  const statefulSet = hidden ? await readStatefulSet(world, names) : seen.statefulSet
  const isOver = claim === undefined || instance.destroying || isRetained(claim) || isAbandoned(claim)
  const refused = isOver ? undefined : await keepVolume(world, names, claim)
  if (pod !== undefined) await recordStop(world, names, pod)
  const wanted = parseWanted(statefulSet?.metadata?.annotations?.[ANNOTATIONS.wanted])
  if (instance.destroying || wanted === undefined || statefulSet?.metadata?.deletionTimestamp !== undefined)
    return Infinity
  const claimLookMs = await keepClaim(world, instance, wanted, refused)
  const [service, controller] = await Promise.all([
    ensureService(world, names, wanted),
    ensureStatefulSet(world, names, wanted),
  ])
  if (service !== 'as it was') world.repaired(names, { kind: 'Service', name: names.name, how: service })
  if (controller !== 'as it was') world.repaired(names, { kind: 'StatefulSet', name: names.name, how: controller })
  if (!wanted.running) {
    instance.answered = undefined
    instance.outerFailure = undefined
    return Math.min(claimLookMs, pod === undefined ? Infinity : await judgeSurroundings(world, instance, pod))
  }
  const filesLookMs = await keepFiles(world, instance, wanted)
  const podLookMs =
    pod === undefined ? await missPod(world, instance, wanted) : await keepPod(world, instance, wanted, pod)
  return Math.min(claimLookMs, filesLookMs, podLookMs)
}

const keepClaim = async (
  world: ClusterWorld,
  instance: KnownInstance,
  wanted: Wanted,
  refused: InstanceFailure | undefined,
): Promise<number> => {
  const { names } = instance
  const claim = world.claims.get(keyIn(names, names.claim))
  if (claim?.metadata.deletionTimestamp !== undefined) {
    instance.storageProblem = claimProblem(claim)
    return Infinity
  }
  try {
    instance.served = await isServedData(world, instance)
    const present = await ensureClaim(world, names, { ...wanted.spec, served: instance.served })
    instance.storageProblem = refused ?? (await growClaim(world, names, present, wanted.spec.storageBytes))
    // A class may learn to expand.
    return instance.storageProblem === undefined ? Infinity : jittered(OUTSIDE_EVERY_MS)
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    instance.storageProblem = { reason: error.reason, message: error.message }
    return Infinity
  }
}

/** Where the claim does not say so its other witness is asked, once while a claim is there. */
const isServedData = async (world: ClusterWorld, instance: KnownInstance): Promise<boolean> => {
  const remains = remainsOf(world, instance.names)
  if (isInitialized(remains.claim)) return true
  if (instance.served !== undefined && remains.claim !== undefined) return instance.served
  return wasServed(remains, await readFilesSecret(world, instance.names))
}

const keepFiles = async (world: ClusterWorld, instance: KnownInstance, wanted: Wanted): Promise<number> => {
  const now = world.now().getTime()
  // The first look of thousands after a start of the operator is spread over the hour.
  if (instance.filesDueAt === 0) instance.filesDueAt = now + FILES_EVERY_MS * Math.random()
  const service = world.services.get(keyIn(instance.names, instance.names.name))
  const exposure = world.settings.exposure[wanted.spec.kind]
  const unproven = isUnproven(service, exposure)
  const isNamed = instance.files?.externalHost === externalHost(service, exposure)
  if (now >= instance.filesDueAt || (unproven && !isNamed)) {
    const before = instance.files?.digest
    instance.files = await ensureServerFiles(world, instance.names, wanted.spec, remainsOf(world, instance.names))
    instance.filesDueAt = now + jittered(FILES_EVERY_MS)
    if (before !== undefined && before !== instance.files.digest) instance.serverDueAt = 0
  }
  // Clients outside wait for the server's proof.
  if (unproven) instance.serverDueAt = Math.min(instance.serverDueAt, now + RELOAD_EVERY_MS)
  return instance.filesDueAt - now
}

const missPod = async (world: ClusterWorld, instance: KnownInstance, wanted: Wanted): Promise<number> => {
  const now = world.now().getTime()
  instance.missingSince ??= now
  const missingMs = now - instance.missingSince
  instance.outerFailure =
    missingMs < POD_NOT_CREATED_MS
      ? undefined
      : {
          reason: 'PodNotCreated',
          message: `The pod ${instance.names.pod} is not made; the events of StatefulSet ${instance.names.name} say why`,
        }
  if (missingMs < POD_MISSING_MS) return POD_MISSING_MS - missingMs
  await relabelPod(world, instance.names, wanted)
  return missingMs < POD_NOT_CREATED_MS ? POD_MISSING_MS : jittered(OUTSIDE_EVERY_MS)
}

const keepPod = async (world: ClusterWorld, instance: KnownInstance, wanted: Wanted, pod: Pod): Promise<number> => {
  const { names } = instance
  instance.missingSince = undefined
  const lookMs = await judgeSurroundings(world, instance, pod)
  await relabelPod(world, names, wanted)
  if (pod.metadata?.deletionTimestamp !== undefined) return lookMs
  const statefulSet = world.statefulSets.get(keyIn(names, names.name))
  if (isRestartDue(wanted, pod) || isStuck(statefulSet, pod)) {
    // Not before the controller knows the new template: it would make the old pod again.
    if (!isTemplateKnown(statefulSet)) return lookMs
    world.log.info({ pod: names.pod, namespace: names.namespace }, 'Restarting Postgres with other figures')
    await world.pods.delete(keyIn(names, names.pod), { uid: pod.metadata?.uid ?? '' })
    return lookMs
  }
  return Math.min(lookMs, await keepServer(world, instance, wanted, pod))
}

const isRestartDue = (wanted: Wanted, pod: Pod): boolean =>
  pod.metadata?.annotations?.[ANNOTATIONS.figures] !== figuresText(wanted.spec)

const isTemplateKnown = (statefulSet: StatefulSet | undefined): boolean =>
  (statefulSet?.status?.observedGeneration ?? 0) >= (statefulSet?.metadata?.generation ?? 1)

/** A pod of an older template whose server never ran waits for what will never come. */
const isStuck = (statefulSet: StatefulSet | undefined, pod: Pod): boolean => {
  const revision = statefulSet?.status?.updateRevision
  return (
    !hasRun(pod) &&
    isTemplateKnown(statefulSet) &&
    revision !== undefined &&
    pod.metadata?.labels?.['controller-revision-hash'] !== revision
  )
}

/** What a pod's own status does not tell: whether its node is lost, or its container waits for a volume. */
const judgeSurroundings = async (world: ClusterWorld, instance: KnownInstance, pod: Pod): Promise<number> => {
  const now = world.now().getTime()
  const nodeName = pod.spec?.nodeName
  const sinceMs = now - Date.parse(pod.metadata?.creationTimestamp ?? '')
  const going = pod.metadata?.deletionTimestamp !== undefined
  const waits = runOf(pod) === undefined && !hasRun(pod) && !going
  if (nodeName !== undefined && (isSilent(pod, now) || (waits && sinceMs >= CONTAINER_LATE_MS))) {
    const lost = isLost(await world.objects.get(nodes, { namespace: '', name: nodeName }))
    instance.outerFailure = lost ? nodeLost(nodeName) : undefined
    if (lost || !waits) return NODE_EVERY_MS
  }
  instance.outerFailure = undefined
  if (nodeName === undefined) return unscheduledPatienceMs(pod, now) || Infinity
  // It is gone by then, or its kubelet does not do what it should.
  if (going) return Math.max(NODE_EVERY_MS, dueMs(pod) + NODE_EVERY_MS - now)
  if (!waits) return Infinity
  if (sinceMs < CONTAINER_LATE_MS) return CONTAINER_LATE_MS - sinceMs
  // Kubelet says why itself.
  if (pod.status?.containerStatuses?.[0]?.state?.waiting?.reason !== 'ContainerCreating') return Infinity
  instance.outerFailure = {
    reason: 'VolumeNotMounted',
    message: `The container is not made yet, mostly for want of a volume; the events of pod ${instance.names.pod} say why`,
  }
  return jittered(OUTSIDE_EVERY_MS)
}

/** Kubelet has not done in time what it should, or somebody else says that the pod is not ready. */
const isSilent = (pod: Pod, now: number): boolean => {
  if (pod.metadata?.deletionTimestamp !== undefined) return now > dueMs(pod) + NODE_EVERY_MS
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')
  return runOf(pod) !== undefined && ready?.status !== 'True' && (isUnresponsive(pod) || hasStarted(pod))
}

/** When a pod that is being deleted should be gone: its deletionTimestamp is set ahead by its grace. */
const dueMs = (pod: Pod): number => Date.parse(String(pod.metadata?.deletionTimestamp))

const hasStarted = (pod: Pod): boolean => pod.status?.containerStatuses?.[0]?.started === true

/** Whatever keeps an instance from running, for `observe`. */
export const failureOf = (instance: KnownInstance, pod: Pod | undefined, nowMs: number): InstanceFailure | undefined =>
  instance.outerFailure ??
  (pod === undefined ? undefined : failureIn(pod, text => judgeLastWords(text, POSTGRES_PORT), nowMs))
