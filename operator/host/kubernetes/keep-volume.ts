/** Has an instance's volume say what is to become of it. */
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import type { InstanceFailure } from '../host.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import type { InstanceNames } from './instance-names.ts'
import { type Fate, isVolumeOf, livingFate, policyOf, volumeChange } from './judge-volume.ts'
import type { Claim, Volume } from './object-types.ts'
import { isRetained } from './observation.ts'

const keyOf = (name: string): { readonly namespace: string; readonly name: string } => ({ namespace: '', name })

/**
 * The volume that holds an instance's data: the one that its claim names, or, with the claim gone, the one that was labelled
 * while it was there. undefined: none was bound.
 */
export const volumeFor = async (
  world: ClusterWorld,
  names: InstanceNames,
  claim: Claim | undefined,
): Promise<Volume | undefined> => {
  if (claim === undefined)
    return world.volumesOf(names.owner.uid).find(candidate => isVolumeOf(names, undefined, candidate))
  const name = claim.spec?.volumeName
  if (name === undefined || name === '') return undefined
  const volume = world.volumes.get(keyOf(name)) ?? (await world.volumes.read(keyOf(name)))
  return volume !== undefined && isVolumeOf(names, claim, volume) ? volume : undefined
}

/** Gives a volume its fate. @returns whether that was a change @throws StoreError */
export const settleVolume = async (
  world: ClusterWorld,
  names: InstanceNames,
  volume: Volume | undefined,
  fate: Fate,
): Promise<boolean> => {
  const change = volume === undefined ? undefined : volumeChange(names, volume, fate)
  if (change !== undefined) await world.volumes.merge(keyOf(volume?.metadata?.name ?? ''), change)
  return change !== undefined
}

/**
 * While the environment lives.
 * @returns why the volume does not take it, or undefined
 */
export const keepVolume = async (
  world: ClusterWorld,
  names: InstanceNames,
  claim: Claim,
): Promise<InstanceFailure | undefined> => {
  const fate = livingFate(claim)
  if (fate === undefined) return undefined
  const volume = await volumeFor(world, names, claim)
  try {
    const told = volume?.metadata?.annotations?.[ANNOTATIONS.deletionPolicy]
    const changed = await settleVolume(world, names, volume, fate)
    // It was told the same before, and says something else.
    if (changed && told === fate.policy && fate.spared !== true)
      world.repaired(names, { kind: 'PersistentVolume', name: volume?.metadata?.name ?? '', how: 'put right' })
    return undefined
  } catch (error) {
    if (!isStoreError(error, 'Invalid', 'Forbidden')) throw error
    const message = `The volume ${volume?.metadata?.name ?? ''} does not take its deletion policy: ${error.message}`
    return { reason: 'VolumePolicyRefused', message: message.slice(0, 400) }
  }
}

/** Writes a new policy on the claim, if it is there, and has its volume follow. */
export const tellClaim = async (world: ClusterWorld, names: InstanceNames, policy: DeletionPolicy): Promise<void> => {
  const key = keyIn(names, names.claim)
  const claim = await world.claims.certain(key)
  if (claim === undefined || isRetained(claim)) return
  const annotations = { [ANNOTATIONS.deletionPolicy]: policy }
  const told =
    policyOf(claim) === policy
      ? claim
      : await world.claims.merge(key, { metadata: { uid: claim.metadata.uid, annotations } })
  await keepVolume(world, names, told)
}
