/** Brings an instance's objects into the shape that is wanted. Writes only what differs; every step may be repeated. */
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import { type Settled, settleObject } from '../../../runtime/kubernetes/settle-object.ts'
import { ConditionError } from '../host.ts'
import { buildService } from './build-service.ts'
import { buildStatefulSet } from './build-stateful-set.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import { ensureClaim } from './ensure-claim.ts'
import { provenHost } from './external-door.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Claim, Secret } from './object-types.ts'
import { type Remains, wasServed } from './served-data.ts'
import { ensureServerFiles, type ServerFiles } from './server-files.ts'
import { startSettings } from './server-settings.ts'
import type { Wanted } from './wanted.ts'
import { isOurService, isOurStatefulSet } from './whose.ts'

/** How an instance is brought up. */
export interface BringUp {
  readonly deletionPolicy: DeletionPolicy
  readonly remains: Remains
  /** The Secret with its files as it was just read; undefined: not yet, for the claim says that data was served. */
  readonly read: { readonly secret: Secret | undefined } | undefined
}

/**
 * Everything but the pod, which the StatefulSet's controller makes.
 * @returns the claim, the server's files, and whether its data was ever served
 * @throws ConditionError what blocks it
 */
export const ensureInstance = async (
  world: ClusterWorld,
  names: InstanceNames,
  wanted: Wanted,
  { deletionPolicy, remains, read }: BringUp,
): Promise<{ readonly claim: Claim; readonly files: ServerFiles; readonly served: boolean }> => {
  const served = wasServed(remains, read?.secret)
  await assertOwnName(world, names)
  const [claim, files] = await Promise.all([
    ensureClaim(world, names, { ...wanted.spec, served }, deletionPolicy),
    ensureServerFiles(world, names, wanted.spec, remains, read),
    ensureService(world, names, wanted),
  ])
  // Last: its pod needs all of the others.
  await ensureStatefulSet(world, names, wanted)
  return { claim, files, served }
}

export const ensureService = async (
  world: ClusterWorld,
  names: InstanceNames,
  { spec }: Wanted,
  /** What its server was seen to prove; undefined: that stays. */
  proven?: string,
): Promise<Settled> => {
  const live = world.services.get(keyIn(names, names.name))
  const service = buildService(names, world.settings.exposure[spec.kind], proven ?? provenHost(live))
  return settleObject(service, live, wish => world.services.apply(wish))
}

export const ensureStatefulSet = async (
  world: ClusterWorld,
  names: InstanceNames,
  wanted: Wanted,
): Promise<Settled> => {
  const statefulSet = buildStatefulSet(names, wanted, startSettings(wanted.spec, names.name), world.settings)
  const live = world.statefulSets.get(keyIn(names, names.name))
  return settleObject(statefulSet, live, wish => world.statefulSets.apply(wish))
}

/** StatefulSet and Service are named by the id alone: those of a predecessor are never taken over. */
const assertOwnName = async (world: ClusterWorld, names: InstanceNames): Promise<void> => {
  const key = keyIn(names, names.name)
  const [statefulSet, service] = await Promise.all([
    world.statefulSets.get(key) ?? world.statefulSets.read(key),
    world.services.get(key) ?? world.services.read(key),
  ])
  const taken: readonly (readonly [kind: string, isTaken: boolean])[] = [
    ['StatefulSet', statefulSet !== undefined && !isOurStatefulSet(statefulSet, names)],
    ['Service', service !== undefined && !isOurService(service, names)],
  ]
  for (const [kind, isTaken] of taken)
    if (isTaken)
      throw new ConditionError(
        'DatabaseReachable',
        'NameTaken',
        `${kind} ${names.name} belongs to somebody else; it is not taken over`,
      )
}
