import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { LABELS, labelValue } from '../../crds/metadata.ts'
import { environmentName } from '../../lib/model/identifiers.ts'
import type { RequestVerb } from '../../lib/model/operation.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { FakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'

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
    const began = Date.now()
    while (!(await this.isDone())) {
      meanwhile?.()
      const tookMs = Date.now() - began
      assert.ok(tookMs < deadlineMs, `Not done: ${JSON.stringify((await this.get())?.status)}\n${tell?.() ?? ''}`)
      // The longer it takes, the less a look more costs of it.
      await sleep(Math.min(Math.max(25, tookMs / 10), 150))
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
