/** All that a project's namespace needs, in the order in which it is made. Pure. */
import { ENVIRONMENT_KINDS } from '../../../lib/model/environment.ts'
import type { KubernetesObject, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import { buildExposurePolicy, buildNetworkPolicy } from './build-network-policy.ts'
import { buildRoleBindings, buildServiceAccount } from './build-project-objects.ts'
import type { KubernetesHostSettings } from './host-settings.ts'
import { networkPolicies, roleBindings, serviceAccounts } from './object-types.ts'

export interface ProjectObject {
  readonly type: ObjectType
  readonly object: KubernetesObject
  /** false: only where it is there already, it has to be as it says. */
  readonly needed: boolean
}

export interface ProjectObjects {
  /** Without them nothing else may be read or written there. */
  readonly bindings: readonly ProjectObject[]
  readonly others: readonly ProjectObject[]
}

export const projectObjects = (
  namespace: string,
  { operatorNamespace, exposure }: Pick<KubernetesHostSettings, 'operatorNamespace' | 'exposure'>,
): ProjectObjects => {
  const exposed = ENVIRONMENT_KINDS.filter(kind => exposure[kind].type !== 'None')
  return {
    bindings: buildRoleBindings(namespace, operatorNamespace).map(object => ({
      ...{ type: roleBindings, object, needed: true },
    })),
    others: [
      { type: serviceAccounts, object: buildServiceAccount(namespace), needed: true },
      { type: networkPolicies, object: buildNetworkPolicy(namespace, operatorNamespace), needed: true },
      // Where nothing is exposed there need be no policy that says so; one from before is emptied.
      { type: networkPolicies, object: buildExposurePolicy(namespace, exposed), needed: exposed.length > 0 },
    ],
  }
}
