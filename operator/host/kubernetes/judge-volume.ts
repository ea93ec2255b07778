/**
 * What an instance's volume should say, so that the cluster does with it what is wanted whoever takes its claim away, and
 * whether we are there or not. Pure. A volume is never deleted by us: told to go with its claim, it is removed, disk and
 * all, by whoever provisioned it.
 */
import { ANNOTATIONS, LABELS } from '../../../crds/metadata.ts'
import { DELETION_POLICIES, type DeletionPolicy } from '../../../lib/model/environment.ts'
import { hasDrifted } from '../../../runtime/kubernetes/drift.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Claim, Volume } from './object-types.ts'

/** Set by provisioners on what they made: only they know how to remove it. */
const PROVISIONED = 'pv.kubernetes.io/provisioned-by'

/** What is to become of a volume when its claim is gone. */
export interface Fate {
  readonly policy: DeletionPolicy
  /** It stays whatever the policy says: its claim is about to go, and nobody asked for that. */
  readonly spared?: boolean
  /** Its environment is gone, and until then at least the data is kept. */
  readonly retainedUntil?: string
}

/** What a claim was told; undefined where somebody took that away, or it is another word. */
export const policyOf = (claim: Claim): DeletionPolicy | undefined =>
  DELETION_POLICIES.find(policy => policy === claim.metadata?.annotations?.[ANNOTATIONS.deletionPolicy])

/** While the environment lives: as its claim says, and never gone with a claim that somebody deletes. */
export const livingFate = (claim: Claim): Fate | undefined => {
  const policy = policyOf(claim)
  const spared = claim.metadata?.deletionTimestamp !== undefined
  return policy === undefined && !spared ? undefined : { policy: policy ?? 'Retain', spared }
}

export const isKept = (volume: Volume): boolean => volume.spec?.persistentVolumeReclaimPolicy === 'Retain'

/** Whether a volume holds the data of this very claim, or held that of the one which is gone. */
export const isVolumeOf = (names: InstanceNames, claim: Claim | undefined, { metadata, spec }: Volume): boolean => {
  const ref = spec?.claimRef
  if (ref?.namespace !== names.namespace || ref.name !== names.claim) return false
  return claim === undefined ? metadata?.labels?.[LABELS.uid] === names.owner.uid : ref.uid === claim.metadata?.uid
}

/** The merge patch that gives a volume its fate; undefined where it says so already. */
export const volumeChange = (
  names: InstanceNames,
  volume: Volume,
  { policy, spared = false, retainedUntil }: Fate,
): Readonly<Record<string, unknown>> | undefined => {
  const keeps = policy === 'Retain' || spared
  // Nobody could remove what an admin made by hand: it stays as he said.
  const spoken = keeps || volume.metadata?.annotations?.[PROVISIONED] !== undefined
  const wish = {
    metadata: {
      labels: { ...names.labels, ...(retainedUntil === undefined ? {} : { [LABELS.retained]: 'true' }) },
      annotations: {
        ...names.annotations,
        [ANNOTATIONS.deletionPolicy]: policy,
        ...(retainedUntil === undefined ? {} : { [ANNOTATIONS.retainedUntil]: retainedUntil }),
      },
    },
    ...(spoken ? { spec: { persistentVolumeReclaimPolicy: keeps ? 'Retain' : 'Delete' } } : {}),
  }
  return hasDrifted(wish, volume) ? { ...wish, metadata: { uid: volume.metadata?.uid, ...wish.metadata } } : undefined
}
