/** A cluster whose pods, volumes, network and Postgres servers are played, and an operator's own namespace on it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { LABELS, labelValue } from '../../crds/metadata.ts'
import { environmentName } from '../../lib/model/identifiers.ts'
import type { RequestVerb } from '../../lib/model/operation.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { type ClaimFaker, startClaimFaker } from '../../testkit/kubernetes/claim-faker.ts'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { letPodsGo } from '../../testkit/kubernetes/let-pods-go.ts'
import { needsLoopbackServices } from '../../testkit/kubernetes/loopback-services.ts'
import { PodFaker } from '../../testkit/kubernetes/pod-faker.ts'
import { ServiceFaker } from '../../testkit/kubernetes/service-faker.ts'

export interface FakedCluster {
  readonly cluster: TestCluster
  readonly store: ResourceStore
  readonly pods: PodFaker
  readonly claims: ClaimFaker
  readonly services: ServiceFaker
  /** Of the operator. */
  readonly namespace: string
  /** Fails with what went wrong in the fakers, if anything did. */
  assertSound(): Promise<void>
}

let running: Promise<FakedCluster> | undefined

/** The one of this test process; ended with it. Where there can be none, the tests of the hook that asks are skipped. */
export const fakedCluster = async (hook: Mocha.Context): Promise<FakedCluster> => {
  await needsLoopbackServices(hook, await apiCluster())
  return (running ??= start())
}

const start = async (): Promise<FakedCluster> => {
  const cluster = await apiCluster()
  await cluster.installKinds()
  const namespace = await cluster.namespace('e2e-operator')
  const pods = await PodFaker.start({ api: await cluster.open('pod-faker') })
  const claims = startClaimFaker(await cluster.open('claim-faker'), { node: pods.node })
  const services = ServiceFaker.start(await cluster.open('service-faker'), pods)
  atEnd(async () => {
    await letPodsGo(cluster.objects)
    await services.stop()
    await claims.stop()
    await pods.stop()
  })
  return {
    cluster,
    store: new KubernetesResourceStore(cluster.api, 'svc-apiserver'),
    pods,
    claims,
    services,
    namespace,
    assertSound: async () => {
      assert.deepEqual([...pods.failures, ...claims.failures, ...services.failures], [])
      assert.deepEqual(await services.strange(), [])
    },
  }
}

/** An environment in a project's namespace of its own, and what the API server would ask of it; on any cluster. */
export class FakedEnvironment {
  readonly faked: Pick<FakedCluster, 'cluster' | 'store'>
  readonly projectId: string
  readonly key: ResourceKey
  #seq = 0

  private constructor(faked: Pick<FakedCluster, 'cluster' | 'store'>, projectId: string, key: ResourceKey) {
    this.faked = faked
    this.projectId = projectId
    this.key = key
  }

  /** Makes the namespace of a new project. */
  static async prepare(faked: Pick<FakedCluster, 'cluster' | 'store'>): Promise<FakedEnvironment> {
    const projectId = `p${randomBytes(5).toString('hex')}`
    const labels = { [LABELS.organization]: labelValue('org'), [LABELS.project]: labelValue(projectId) }
    const namespace = await faked.cluster.namespace('e2e', labels)
    const name = environmentName({ organizationId: 'org', projectId, environmentId: 'main' })
    return new FakedEnvironment(faked, projectId, { namespace, name })
  }

  get(): Promise<Environment | undefined> {
    return this.faked.store.get(environmentType, this.key)
  }

  /** Asks for something, as one operation of the API does. @returns when it was written */
  async ask(verb: RequestVerb, change: Partial<EnvironmentSpec> = {}): Promise<void> {
    const { store } = this.faked
    const request = { id: `op-${this.#seq + 1}`, seq: ++this.#seq, verb }
    if (verb === 'create') {
      const spec = { organizationId: 'org', projectId: this.projectId, environmentId: 'main', kind: 'staging' as const }
      await store.create(environmentType, { ...this.key, spec: { ...spec, ...change, request } })
      return
    }
    const { uid } = (await this.get())!.metadata
    await store.patch(environmentType, this.key, { spec: { ...change, request } }, { uid })
    if (verb === 'delete') await store.delete(environmentType, this.key, { uid })
  }

  /** Whether the last thing that was asked for is done. @throws Error when it failed */
  async isDone(): Promise<boolean> {
    const environment = await this.get()
    if (environment === undefined) return true
    const { operation, observedGeneration } = environment.status ?? {}
    if (operation?.seq !== this.#seq) return false
    if (operation.outcome === 'failed') throw new Error(`${operation.id} failed: ${operation.message}`)
    return operation.outcome === 'succeeded' && observedGeneration === environment.metadata.generation
  }

  /** Waits until the last thing that was asked for is done. @throws Error when it failed, or was not done in time */
  async done({ deadlineMs = 120_000, meanwhile, tell }: Patience = {}): Promise<void> {
    const until = Date.now() + deadlineMs
    while (!(await this.isDone())) {
      meanwhile?.()
      assert.ok(Date.now() < until, `Not done: ${JSON.stringify((await this.get())?.status)}\n${tell?.() ?? ''}`)
      await sleep(25)
    }
  }
}

/** How somebody waits. */
export interface Patience {
  readonly deadlineMs?: number
  /** Between two looks. */
  readonly meanwhile?: () => void
  /** What is said beside the status when the time is over. */
  readonly tell?: () => string
}
