/**
 * Whose an object is. Its marks can be changed by hand, one at a time: a label alone must never move an object to an
 * environment that does not exist, whose owner reference would have it collected. Pure.
 */
import { LABELS } from '../../../crds/metadata.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Pod, Service, StatefulSet } from './object-types.ts'

const ownerUid = (object: StatefulSet | Service): string | undefined =>
  object.metadata?.ownerReferences?.find(({ kind }) => kind === 'Environment')?.uid

/** By its selector, which the API server lets nobody change. */
export const isOurStatefulSet = (statefulSet: StatefulSet | undefined, { owner }: InstanceNames): boolean =>
  statefulSet?.spec?.selector.matchLabels?.[LABELS.uid] === owner.uid

/** By two of its three marks: owner, label and selector. */
export const isOurService = (service: Service | undefined, { owner }: InstanceNames): boolean =>
  service !== undefined &&
  [ownerUid(service), service.metadata?.labels?.[LABELS.uid], service.spec?.selector?.[LABELS.uid]].filter(
    uid => uid === owner.uid,
  ).length >= 2

/** By the data that it uses. */
export const isOurPod = (pod: Pod | undefined, names: InstanceNames): boolean =>
  pod?.spec?.volumes?.some(volume => volume.persistentVolumeClaim?.claimName === names.claim) === true
