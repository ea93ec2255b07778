/** The claim of an instance's data: made once, grown where its class allows, never made anew for data that was there. */
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import { hasDrifted, quantity } from '../../../runtime/kubernetes/drift.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import { ConditionError, type InstanceFailure } from '../host.ts'
import { buildClaim } from './build-claim.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import type { InstanceNames } from './instance-names.ts'
import { policyOf } from './judge-volume.ts'
import { type Claim, storageClasses } from './object-types.ts'
import type { PlacedSpec } from './wanted.ts'

export interface WantedClaim extends Pick<PlacedSpec, 'storageBytes' | 'image'> {
  /** Its data was once somebody's: where it is gone it is not made anew. */
  readonly served: boolean
}

/**
 * Makes the claim if there never was one, and puts its labels back.
 * @throws ConditionError DataMissing, ClaimDeleted
 */
export const ensureClaim = async (
  world: ClusterWorld,
  names: InstanceNames,
  { storageBytes, image, served }: WantedClaim,
  /** undefined: it says what it said. */
  deletionPolicy?: DeletionPolicy,
): Promise<Claim> => {
  const key = keyIn(names, names.claim)
  const claim = world.claims.get(key) ?? (await world.claims.read(key))
  if (claim?.metadata.deletionTimestamp !== undefined) {
    const problem = claimProblem(claim)
    throw new ConditionError('StorageReady', problem.reason, problem.message)
  }
  if (claim === undefined && served)
    throw new ConditionError(
      'StorageReady',
      'DataMissing',
      `The claim ${names.claim} that holds the data is gone; it is not made anew. Bind its volume to a claim of that name`,
    )
  const { settings } = world
  const wish = buildClaim(names, {
    storageBytes: claim === undefined ? storageBytes : requested(claim),
    // Immutable once it is there.
    storageClass: claim === undefined ? settings.storageClass : claim.spec.storageClassName,
    lineage: claim?.metadata.annotations[ANNOTATIONS.lineage] ?? `template:${image}`,
    // Whoever took this away must not have the data taken for none.
    initialized: served,
    deletionPolicy: deletionPolicy ?? (claim === undefined ? undefined : policyOf(claim)),
  })
  if (claim === undefined) return world.claims.apply(wish)
  const { labels, annotations } = wish.metadata ?? {}
  if (!hasDrifted({ labels, annotations }, claim.metadata)) return claim
  const right = await world.claims.merge(key, { metadata: { uid: claim.metadata.uid, labels, annotations } })
  if (deletionPolicy === undefined)
    world.repaired(names, { kind: 'PersistentVolumeClaim', name: names.claim, how: 'put right' })
  return right
}

const requested = (claim: Claim): number => quantity(claim.spec?.resources?.requests?.['storage'])

/**
 * Asks for a bigger volume where the spec does; whatever Postgres is doing, a full disk above all.
 * @returns why it cannot grow, or undefined
 */
export const growClaim = async (
  world: ClusterWorld,
  names: InstanceNames,
  claim: Claim,
  storageBytes: number,
): Promise<InstanceFailure | undefined> => {
  if (!(requested(claim) < storageBytes)) return undefined
  const className = claim.spec?.storageClassName
  const allowed = className !== undefined && (await canExpand(world, className))
  if (!allowed)
    return {
      reason: 'VolumeNotExpandable',
      message: `The volume keeps its size: storage class "${className ?? ''}" does not allow it to grow`,
    }
  try {
    await world.claims.merge(keyIn(names, names.claim), {
      metadata: { uid: claim.metadata?.uid },
      spec: { resources: { requests: { storage: String(storageBytes) } } },
    })
    return undefined
  } catch (error) {
    if (!isStoreError(error, 'Invalid', 'Forbidden')) throw error
    return { reason: 'VolumeNotExpandable', message: `The volume cannot grow: ${error.message.slice(0, 300)}` }
  }
}

const canExpand = async (world: ClusterWorld, className: string): Promise<boolean> =>
  (await world.objects.get(storageClasses, { namespace: '', name: className }))?.allowVolumeExpansion === true

/** What is wrong with a claim, whatever Postgres does. */
export const claimProblem = (claim: Claim): InstanceFailure => ({
  reason: 'ClaimDeleted',
  message: `The claim ${claim.metadata?.name ?? ''} was deleted and goes when Postgres stops; its volume ${claim.spec?.volumeName ?? ''} is kept`,
})
