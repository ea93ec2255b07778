/** The claim of an instance's data. No owner: nothing but the operator ever deletes it. Pure. */
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Claim } from './object-types.ts'

/** Its data was once served: it is never begun anew. */
export const isInitialized = (claim: Claim | undefined): boolean =>
  claim?.metadata?.annotations?.[ANNOTATIONS.initialized] === 'true'

export const buildClaim = (
  names: InstanceNames,
  figures: {
    readonly storageBytes: number
    readonly storageClass: string | undefined
    readonly lineage: string
    readonly initialized: boolean
    readonly deletionPolicy: DeletionPolicy | undefined
  },
): Claim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name: names.claim,
    namespace: names.namespace,
    labels: names.labels,
    annotations: {
      ...names.annotations,
      [ANNOTATIONS.lineage]: figures.lineage,
      ...(figures.initialized ? { [ANNOTATIONS.initialized]: 'true' } : {}),
      ...(figures.deletionPolicy === undefined ? {} : { [ANNOTATIONS.deletionPolicy]: figures.deletionPolicy }),
    },
  },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: String(figures.storageBytes) } },
    ...(figures.storageClass === undefined ? {} : { storageClassName: figures.storageClass }),
  },
})
