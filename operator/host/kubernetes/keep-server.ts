/**
 * Makes the server in a pod that runs what it should be, by a session of the superuser: as soon as a run answers, and from then
 * on seldom. Kubelet says whether it is well; what only a session tells (room on its disk, files that it read, a limit that
 * somebody changed) is asked for every hour, sooner only where the disk fills.
 */
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { ConditionError } from '../host.ts'
import { isInitialized } from './build-claim.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import { ensureService } from './ensure-instance.ts'
import { isUnproven } from './external-door.ts'
import { mayTrustFormerOnly, trustsFormerOnly } from './foreign-authority.ts'
import { jittered } from './jittered.ts'
import { isReady, type Run, runOf } from './judge-pod.ts'
import type { KnownInstance } from './known-instance.ts'
import type { Pod } from './object-types.ts'
import { LOOK_AT_MOST_MS, lookAgainMs } from './room-pace.ts'
import { forbidNewData, remainsOf } from './served-data.ts'
import { ensureServerFiles } from './server-files.ts'
import { doorOf, type ServerNews, settleServer, superuserAddress } from './server-session.ts'
import type { Wanted } from './wanted.ts'

/** Until a server has read new files. */
export const RELOAD_EVERY_MS = 5_000
/** One that answered before and does not now. */
const SILENT_MS = 60_000
/** All places are taken. */
const BUSY_MS = 200

/** @returns when to look again, in milliseconds; Infinity: when something happens */
export const keepServer = async (
  world: ClusterWorld,
  instance: KnownInstance,
  wanted: Wanted,
  pod: Pod,
): Promise<number> => {
  const run = runOf(pod)
  const now = world.now().getTime()
  // Nobody answers there, and a call would hold a worker until its deadline.
  if (run === undefined || instance.outerFailure?.reason === 'NodeLost') return Infinity
  const signing = await world.authority.get()
  if (isServed(world, instance, pod) && !mayTrustFormerOnly(signing.state, pod)) {
    instance.answered = run
    const unproven = isUnproven(
      world.services.get(keyIn(instance.names, instance.names.name)),
      world.settings.exposure[wanted.spec.kind],
    )
    instance.serverDueAt = now + (unproven ? RELOAD_EVERY_MS : LOOK_AT_MOST_MS * Math.random())
  }
  const known = run.id === instance.answered?.id
  if (known && now < instance.serverDueAt) return instance.serverDueAt - now
  const { names } = instance
  const door = doorOf(names, world.services.get(keyIn(names, names.name)), signing.authorities)
  if (door === undefined) return Infinity
  const leave = (known ? world.looks : world.knocks).enter()
  if (leave === undefined) return jittered(BUSY_MS)
  try {
    const news = await settleServer(
      superuserAddress(door, signing),
      { connectionLimit: wanted.spec.maxConnections, files: instance.files?.digest },
      instance.disk?.low === true,
      world.mustLead,
    )
    await noteServed(world, instance)
    await noteProof(world, instance, wanted, news)
    return takeIn(instance, run, news, now)
  } catch (error) {
    if (error instanceof ConditionError || isFromApiServer(error)) throw error
    if (trustsFormerOnly(signing.state, pod, error)) return await restartWithFiles(world, instance, wanted, pod)
    world.log.debug({ err: error, namespace: names.namespace, name: names.name }, 'Postgres does not answer yet')
    if (!known) return knockAgainMs(pod, now)
    instance.serverDueAt = now + jittered(SILENT_MS)
    return instance.serverDueAt - now
  } finally {
    leave()
  }
}

/** A process that has just begun says nothing about servers that run: kubelet's word counts for one that was served before. */
const isServed = (world: ClusterWorld, { looked, names }: KnownInstance, pod: Pod): boolean =>
  !looked && isReady(pod) && isInitialized(world.claims.get(keyIn(names, names.claim)))

/** @returns when to look again */
const takeIn = (instance: KnownInstance, run: Run, { files, disk }: ServerNews, now: number): number => {
  const reread = instance.files === undefined || files === instance.files.digest
  const paceMs = jittered(lookAgainMs(disk, instance.disk, now - instance.diskReadAt))
  if (disk !== undefined) {
    instance.disk = disk
    instance.diskReadAt = now
  }
  instance.answered = run
  instance.serverDueAt = now + (reread ? paceMs : RELOAD_EVERY_MS)
  return instance.serverDueAt - now
}

/** A server that has read its files proves the name that they are for: clients outside may be told. */
const noteProof = async (
  world: ClusterWorld,
  { names, files }: KnownInstance,
  wanted: Wanted,
  news: ServerNews,
): Promise<void> => {
  if (files?.externalHost !== undefined && files.digest === news.files)
    await ensureService(world, names, wanted, files.externalHost)
}

/** Its files first: what starts next reads them. */
const restartWithFiles = async (
  world: ClusterWorld,
  instance: KnownInstance,
  wanted: Wanted,
  pod: Pod,
): Promise<number> => {
  const { names } = instance
  instance.files = await ensureServerFiles(world, names, wanted.spec, remainsOf(world, names))
  world.log.warn({ pod: names.pod, namespace: names.namespace }, 'Restarting Postgres with the new authority')
  await world.pods.delete(keyIn(names, names.pod), { uid: pod.metadata?.uid ?? '' })
  return Infinity
}

const isFromApiServer = (error: unknown): boolean => error instanceof Error && error.name === 'StoreError'

/** Soon after its container began; seldom where it recovers for long. */
const knockAgainMs = (pod: Pod, now: number): number => {
  const began = pod.status?.containerStatuses?.[0]?.state?.running?.startedAt
  const sinceMs = began === undefined ? 0 : now - Date.parse(String(began))
  return Math.min(Math.max(sinceMs / 20, 50), 2_000)
}

/**
 * From now on the data is somebody's: it is never made anew, whatever becomes of the volume. The Secret first: a claim that says
 * so is not asked about again.
 */
const noteServed = async (world: ClusterWorld, instance: KnownInstance): Promise<void> => {
  const { names } = instance
  const claim = world.claims.get(keyIn(names, names.claim))
  const isNoted = claim === undefined || isInitialized(claim)
  if (instance.served === true && isNoted) return
  await forbidNewData(world, names)
  instance.served = true
  if (!isNoted)
    await world.claims.merge(keyIn(names, names.claim), {
      metadata: { uid: claim.metadata.uid, annotations: { [ANNOTATIONS.initialized]: 'true' } },
    })
}
