/** Plays the volume provisioner on a cluster that has none: gives every claim a volume without a disk, and takes released ones away. */
import type { V1PersistentVolume, V1PersistentVolumeClaim } from '@kubernetes/client-node'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { watchObjects } from './watch-objects.ts'

export const CLAIM: ObjectType<V1PersistentVolumeClaim> = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
}
export const VOLUME: ObjectType<V1PersistentVolume> = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  clusterScoped: true,
}
const PROVISIONER = 'svc.internal/faked'

export type ReclaimPolicy = 'Delete' | 'Retain'

export interface ClaimFaker {
  /** Volumes whose disk was removed, as a provisioner does it with one that is released and told to go. */
  readonly removed: ReadonlySet<string>
  /** What the class says of volumes that are made from now on; at first `Delete`. */
  reclaim(policy: ReclaimPolicy): void
  /** What went wrong in the faker itself. */
  readonly failures: readonly unknown[]
  stop(): Promise<void>
}

/** Begins, for the claims of these namespaces or of all. The volumes are bound to them by the cluster's own controller. */
export const startClaimFaker = (
  api: KubernetesApi,
  { node, namespaces }: { readonly node: string; readonly namespaces?: readonly string[] },
): ClaimFaker => {
  const objects = kubernetesObjects(api, 'claim-faker')
  const stopping = new AbortController()
  const failures: unknown[] = []
  const given = new Set<string>()
  const removed = new Set<string>()
  let classPolicy: ReclaimPolicy = 'Delete'
  const attempt = (call: Promise<unknown>): void =>
    void call.catch((error: unknown) => {
      const expected = isStoreError(error, 'AlreadyExists', 'NotFound', 'Conflict')
      if (!stopping.signal.aborted && !expected) failures.push(error)
    })
  const provide = (uid: string, claim: V1PersistentVolumeClaim | undefined): void => {
    if (namespaces?.includes(claim?.metadata?.namespace ?? '') === false) return
    const bound = claim === undefined || (claim.spec?.volumeName ?? '') !== ''
    if (bound || claim.metadata?.deletionTimestamp !== undefined || given.has(uid)) return
    given.add(uid)
    attempt(objects.create(VOLUME, volumeOf(claim, node, classPolicy)))
  }
  const reclaim = (_: string, volume: V1PersistentVolume | undefined): void => {
    if (volume?.metadata?.annotations?.['pv.kubernetes.io/provisioned-by'] !== PROVISIONER) return
    if (volume.spec?.persistentVolumeReclaimPolicy !== 'Delete' || volume.status?.phase !== 'Released') return
    if (volume.metadata.deletionTimestamp !== undefined) return
    const { uid = '', name = '' } = volume.metadata
    removed.add(name)
    attempt(objects.delete(VOLUME, { namespace: '', name }, { uid }))
  }
  const running = [
    watchObjects(api, CLAIM, stopping.signal, provide),
    watchObjects(api, VOLUME, stopping.signal, reclaim),
  ]
  return {
    failures,
    removed,
    reclaim: policy => (classPolicy = policy),
    stop: async () => {
      stopping.abort()
      await Promise.allSettled(running)
    },
  }
}

const volumeOf = (
  { metadata, spec }: V1PersistentVolumeClaim,
  node: string,
  classPolicy: ReclaimPolicy,
): V1PersistentVolume => ({
  metadata: { name: `pvc-${metadata!.uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': PROVISIONER } },
  spec: {
    capacity: { storage: spec!.resources?.requests?.['storage'] ?? '1Gi' },
    accessModes: spec!.accessModes!,
    persistentVolumeReclaimPolicy: classPolicy,
    ...(spec!.storageClassName === undefined ? {} : { storageClassName: spec!.storageClassName }),
    claimRef: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: metadata!.namespace!,
      name: metadata!.name!,
      uid: metadata!.uid!,
    },
    local: { path: '/faked' },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
      },
    },
  },
})
