/**
 * Whether an instance's data was ever served: then an empty volume is no place to begin anew. Two witnesses say so, each when the
 * other was changed by hand: the claim, which is watched, and the Secret with the server's files, from which the pod learns it.
 */
import { isStoreError } from '../../../runtime/store/store-error.ts'
import { isInitialized } from './build-claim.ts'
import { allowsNewData, NEW_DATA } from './build-files-secret.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import type { InstanceNames } from './instance-names.ts'
import { type Claim, type Secret, secrets } from './object-types.ts'

/** What an instance says of its data, beside its Secret. */
export interface Remains {
  readonly claim: Claim | undefined
  /** Its StatefulSet stands, which is made last: where both witnesses are gone, somebody took them away. */
  readonly stands: boolean
}

/** Pure. */
export const wasServed = ({ claim, stands }: Remains, secret: Secret | undefined): boolean => {
  if (isInitialized(claim)) return true
  if (secret !== undefined) return !allowsNewData(secret)
  return claim === undefined && stands
}

/** Of an instance that is kept: its StatefulSet says so. */
export const remainsOf = (world: ClusterWorld, names: InstanceNames): Remains => ({
  claim: world.claims.get(keyIn(names, names.claim)),
  stands: true,
})

export const readFilesSecret = (world: ClusterWorld, names: InstanceNames): Promise<Secret | undefined> =>
  world.objects.get(secrets, keyIn(names, names.files))

/** No container that starts from now on begins anew. */
export const forbidNewData = async (world: ClusterWorld, names: InstanceNames): Promise<void> => {
  try {
    await world.objects.merge(secrets, keyIn(names, names.files), { data: { [NEW_DATA]: null } })
  } catch (error) {
    // Whoever makes it again sees the claim.
    if (!isStoreError(error, 'NotFound')) throw error
  }
}
