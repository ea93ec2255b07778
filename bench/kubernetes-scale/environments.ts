/** Many environments on a cluster whose pods are played, and what becomes of them. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER, instanceName, LABELS, labelValue } from '../../crds/metadata.ts'
import type { DeletionPolicy } from '../../lib/model/environment.ts'
import { environmentName } from '../../lib/model/identifiers.ts'
import { keyText, type ResourceKey } from '../../lib/model/resource.ts'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import { eachOf } from '../../testkit/each-of.ts'
import type { TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { watchObjects } from '../../testkit/kubernetes/watch-objects.ts'

/** One project's, in its own namespace. */
const PER_PROJECT = 20

const ENVIRONMENT: ObjectType = { apiVersion: environmentType.apiVersion, kind: 'Environment', plural: 'environments' }

/** Namespaces of projects, each labelled, for so many environments. @returns a key for each environment */
export const makeProjects = async (cluster: TestCluster, environments: number): Promise<readonly ResourceKey[]> => {
  const projects = Array.from({ length: Math.ceil(environments / PER_PROJECT) }, () => ({
    projectId: `p${randomBytes(5).toString('hex')}`,
    namespace: '',
  }))
  await eachOf(projects, async project => {
    const labels = { [LABELS.organization]: labelValue('org'), [LABELS.project]: labelValue(project.projectId) }
    project.namespace = await cluster.namespace('scale', labels)
  })
  return Array.from({ length: environments }, (_, i) => {
    const { projectId, namespace } = projects[Math.floor(i / PER_PROJECT)]!
    return {
      namespace,
      name: environmentName({ organizationId: 'org', projectId, environmentId: `e${i % PER_PROJECT}x` }),
    }
  })
}

/** How many projects the keys are in. */
export const projectsOf = (keys: readonly ResourceKey[]): number => new Set(keys.map(({ namespace }) => namespace)).size

const pathOf = ({ name }: ResourceKey) => {
  const [organizationId = '', projectId = '', environmentId = ''] = name.split('.')
  return { organizationId, projectId, environmentId }
}

/** What the API server writes for it: a spec, and the finalizer by which the operator will see it go. */
export const resourceOf = (key: ResourceKey) => ({
  ...key,
  finalizers: [ENVIRONMENT_FINALIZER],
  spec: { ...pathOf(key), kind: 'staging' as const },
})

/** What the StatefulSet of an environment is called, and what the names of its other children begin with. */
export const childrenName = (key: ResourceKey): string => instanceName(pathOf(key))

/** Follows every Environment of a cluster, and changes them as people do. */
export class Environments {
  readonly store: KubernetesResourceStore
  readonly #ended = new AbortController()
  readonly #ready = new Set<string>()
  readonly #uids = new Map<string, string>()

  constructor(cluster: TestCluster) {
    this.store = new KubernetesResourceStore(cluster.api, 'svc-apiserver')
    void watchObjects(cluster.api, ENVIRONMENT, this.#ended.signal, (uid, object) => {
      const { status, metadata } = (object ?? {}) as unknown as Partial<Environment>
      const ready = status?.phase === 'ready' && status.observedGeneration === metadata?.generation
      if (ready) this.#ready.add(uid)
      else this.#ready.delete(uid)
    })
  }

  create(keys: readonly ResourceKey[]): Promise<void> {
    return eachOf(keys, async key => {
      const { metadata } = await this.store.create(environmentType, resourceOf(key))
      this.#uids.set(keyText(key), metadata.uid)
    })
  }

  /** A change that a child of it has to follow, and no restart. */
  async change(key: ResourceKey, deletionPolicy: DeletionPolicy): Promise<void> {
    await this.store.patch(environmentType, key, { spec: { deletionPolicy } }, { uid: this.#uids.get(keyText(key))! })
  }

  /** @throws Error with what is there instead */
  async untilReady(count: number, deadlineMs: number): Promise<void> {
    const until = Date.now() + deadlineMs
    while (this.#ready.size < count) {
      if (Date.now() > until) throw new Error(`${this.#ready.size} of ${count} are ready after ${deadlineMs} ms`)
      await sleep(20)
    }
  }

  end(): void {
    this.#ended.abort()
  }
}
