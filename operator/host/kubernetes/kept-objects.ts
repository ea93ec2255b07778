/** What the operator keeps of the objects that it follows: thousands of them, of which it reads little. Pure. */
import type { Observed } from '../../../runtime/kubernetes/object-source.ts'
import type { Pod, PodContainer, Volume } from './object-types.ts'

type Field<O, K extends keyof O> = { readonly [Key in K]?: O[Key] }

/** Those fields that are there. */
const only = <O extends object, K extends keyof O>(object: O | undefined, ...names: readonly K[]): Field<O, K> =>
  Object.fromEntries(names.filter(name => object?.[name] !== undefined).map(name => [name, object?.[name]])) as Field<
    O,
    K
  >

const keptContainer = (status: PodContainer): PodContainer =>
  only(
    status,
    ...(['name', 'containerID', 'ready', 'started', 'restartCount', 'state', 'lastState'] as const),
  ) as PodContainer

/** Where it is, which claim it mounts, and how its containers are; not what they are made of. */
export const keptPod = ({ spec, status, ...pod }: Observed<Pod>): Observed<Pod> => ({
  ...pod,
  spec: {
    ...only(spec, 'nodeName'),
    ...(spec.volumes && { volumes: spec.volumes.filter(({ persistentVolumeClaim: claim }) => claim !== undefined) }),
  },
  ...(status && {
    status: {
      ...only(status, 'phase', 'conditions'),
      ...(status.containerStatuses && { containerStatuses: status.containerStatuses.map(keptContainer) }),
    },
  }),
})

/** Where its disk is, and how it is reached, is nobody's business here. */
export const keptVolume = ({ spec, status: _, ...volume }: Observed<Volume>): Observed<Volume> => ({
  ...volume,
  spec: only(spec, 'claimRef', 'persistentVolumeReclaimPolicy'),
})
