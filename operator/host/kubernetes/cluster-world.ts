/** What every part of the host shares: the cluster as it is seen and written, and what an admin decided. */
import type { KubernetesObjects, ObjectKey } from '../../../runtime/kubernetes/kubernetes-object.ts'
import type { LiveObjects } from '../../../runtime/kubernetes/live-objects.ts'
import type { Log } from '../../../runtime/log/log.ts'
import type { AuthoritySecret } from './authority-secret.ts'
import type { Correction } from './correction.ts'
import type { KubernetesHostSettings } from './host-settings.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Claim, Pod, Service, StatefulSet, Volume } from './object-types.ts'
import type { InstanceObjects } from './observation.ts'
import type { Places } from './places.ts'
import { isOurPod, isOurService, isOurStatefulSet } from './whose.ts'

/** The kinds that are watched, each read without a call. */
export interface Watched {
  readonly statefulSets: LiveObjects<StatefulSet>
  readonly pods: LiveObjects<Pod>
  readonly services: LiveObjects<Service>
  readonly claims: LiveObjects<Claim>
  readonly volumes: LiveObjects<Volume>
}

export interface ClusterWorld extends Watched {
  /** Volumes that say an instance's uid, with or without a claim. */
  volumesOf(uid: string): readonly Volume[]
  /** For kinds that are not watched: Secrets above all. */
  readonly objects: KubernetesObjects
  readonly settings: KubernetesHostSettings
  readonly authority: AuthoritySecret
  /** Sessions with servers that are about to answer; fewer than workers, so that silent ones never take them all. */
  readonly knocks: Places
  /** Sessions with servers that are known to be well: there is no hurry. */
  readonly looks: Places
  /** Throws where this process may not change anything: asked before each change that the API server does not see. */
  readonly mustLead: () => void
  readonly log: Log
  /** Tells that something of an instance was not as it should be, and is again. */
  readonly repaired: (names: InstanceNames, correction: Correction) => void
  readonly now: () => Date
}

/** Where an instance's object of a name is. */
export const keyIn = ({ namespace }: InstanceNames, name: string): ObjectKey => ({ namespace, name })

/** An instance's objects as they are now. What else has their names is nobody's here. */
export const objectsOf = (world: Watched, names: InstanceNames): InstanceObjects =>
  owned(names, {
    statefulSet: world.statefulSets.get(keyIn(names, names.name)),
    pod: world.pods.get(keyIn(names, names.pod)),
    service: world.services.get(keyIn(names, names.name)),
    claim: world.claims.get(keyIn(names, names.claim)),
  })

/** The same, after asking the API server for what is not certain. */
export const certainObjectsOf = async (world: Watched, names: InstanceNames): Promise<InstanceObjects> => {
  const [statefulSet, pod, service, claim] = await Promise.all([
    world.statefulSets.certain(keyIn(names, names.name)),
    world.pods.certain(keyIn(names, names.pod)),
    world.services.certain(keyIn(names, names.name)),
    world.claims.certain(keyIn(names, names.claim)),
  ])
  return owned(names, { statefulSet, pod, service, claim })
}

/** Asked of the API server: one whose label was taken away is not seen by a watch any more, and there all the same. */
export const readStatefulSet = async (world: Watched, names: InstanceNames): Promise<StatefulSet | undefined> => {
  const statefulSet = await world.statefulSets.read(keyIn(names, names.name))
  return isOurStatefulSet(statefulSet, names) ? statefulSet : undefined
}

const owned = (names: InstanceNames, { statefulSet, pod, service, claim }: InstanceObjects): InstanceObjects => ({
  statefulSet: isOurStatefulSet(statefulSet, names) ? statefulSet : undefined,
  pod: isOurPod(pod, names) ? pod : undefined,
  service: isOurService(service, names) ? service : undefined,
  claim,
})
