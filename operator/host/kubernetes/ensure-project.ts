/** Sees to what a project's namespace needs, once an hour and before the first environment in it. */
import { ENVIRONMENT_KINDS } from '../../../lib/model/environment.ts'
import type { KubernetesObject, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import { settleObject } from '../../../runtime/kubernetes/settle-object.ts'
import { buildExposurePolicy, buildNetworkPolicy } from './build-network-policy.ts'
import { buildRoleBindings, buildServiceAccount } from './build-project-objects.ts'
import type { ClusterWorld } from './cluster-world.ts'
import { type NetworkPolicy, networkPolicies, roleBindings, serviceAccounts } from './object-types.ts'

const LOOK_AGAIN_MS = 3_600_000

export class Projects {
  readonly #world: ClusterWorld
  readonly #done = new Map<string, { readonly until: number; readonly work: Promise<void> }>()

  constructor(world: ClusterWorld) {
    this.#world = world
  }

  /** @throws StoreError */
  ensure(namespace: string): Promise<void> {
    const now = this.#world.now().getTime()
    const known = this.#done.get(namespace)
    if (known !== undefined && now < known.until) return known.work
    const work = this.#ensure(namespace)
    this.#done.set(namespace, { until: now + LOOK_AGAIN_MS * (0.9 + Math.random() / 5), work })
    work.catch(() => this.#done.delete(namespace))
    return work
  }

  /** Looks again at the next `ensure`. */
  forget(namespace: string): void {
    this.#done.delete(namespace)
  }

  async #ensure(namespace: string): Promise<void> {
    const { operatorNamespace, exposure } = this.#world.settings
    const exposed = ENVIRONMENT_KINDS.filter(kind => exposure[kind].type !== 'None')
    // The bindings first: without them nothing else may be read or written here.
    for (const binding of buildRoleBindings(namespace, operatorNamespace)) await this.#apply(roleBindings, binding)
    await Promise.all([
      this.#apply(serviceAccounts, buildServiceAccount(namespace)),
      this.#apply(networkPolicies, buildNetworkPolicy(namespace, operatorNamespace)),
      this.#expose(buildExposurePolicy(namespace, exposed), exposed.length > 0),
    ])
  }

  /** Where nothing is exposed there need be no policy that says so; one from before is emptied. */
  async #expose(policy: NetworkPolicy, needed: boolean): Promise<void> {
    const { namespace = '', name = '' } = policy.metadata ?? {}
    if (needed || (await this.#world.objects.get(networkPolicies, { namespace, name })) !== undefined)
      await this.#apply(networkPolicies, policy)
  }

  async #apply<O extends KubernetesObject>(type: ObjectType<O>, object: O): Promise<void> {
    const { objects } = this.#world
    const key = { namespace: object.metadata?.namespace ?? '', name: object.metadata?.name ?? '' }
    await settleObject(object, await objects.get(type, key), wish => objects.apply(type, wish))
  }
}
