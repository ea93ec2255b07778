/** One operator at work on a cluster whose pods, volumes and servers are played, and the sentences that its tests are made of. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConditionType, conditionOf } from '../../crds/conditions.ts'
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { instanceName, shortUid } from '../../crds/metadata.ts'
import type { Claim } from '../../operator/host/kubernetes/object-types.ts'
import { claims } from '../../operator/host/kubernetes/object-types.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'
import { type ProxiedOperator, proxiedOperator } from './proxied-operator.ts'

/** Above what anything takes on a busy machine. */
const DEADLINE_MS = 90_000

interface ToldEvent {
  readonly type: string
  readonly reason: string
  /** With six digits of a second, in UTC: as texts they are in order. */
  readonly eventTime: string
  readonly regarding: { readonly kind: string; readonly name: string }
}

export class OperatorScene {
  readonly faked: FakedCluster
  readonly operator: OperatorProcess
  readonly kubectl: ReturnType<typeof kubectlOn>
  readonly #end: () => Promise<void>
  readonly #made: FakedEnvironment[] = []

  private constructor(faked: FakedCluster, operator: OperatorProcess, end: () => Promise<void>) {
    // Also where `stop` finds a fault before it comes to that: a test run ends only without children.
    atEnd(async () => {
      await operator.stop('SIGKILL')
    })
    this.faked = faked
    this.operator = operator
    this.kubectl = kubectlOn(faked.cluster.kubeconfig)
    this.#end = end
  }

  /** With its operator at work. Where there can be none, the tests of the hook are skipped. */
  static async start(
    hook: Mocha.Context,
    identity: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<OperatorScene> {
    const faked = await fakedCluster(hook)
    const { kubeconfig } = faked.cluster
    const operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity, environment })
    await operator.start()
    return new OperatorScene(faked, operator, async () => undefined)
  }

  /** The same, whose way to the API server leads through a proxy. */
  static async startProxied(
    hook: Mocha.Context,
    identity: string,
  ): Promise<{ readonly scene: OperatorScene; readonly proxy: ProxiedOperator['proxy'] }> {
    const faked = await fakedCluster(hook)
    const { operator, proxy } = await proxiedOperator(faked, identity)
    await operator.start()
    return { proxy, scene: new OperatorScene(faked, operator, () => proxy.stop()) }
  }

  /** Ends what was made and is still there, and the operator. @throws Error when it or a faker did not fare well */
  async stop(): Promise<void> {
    this.faked.pods.behave({})
    if (!this.operator.running) await this.operator.start()
    const left: FakedEnvironment[] = []
    for (const environment of this.#made) {
      const { spec, metadata } = (await environment.get()) ?? {}
      if (spec === undefined) continue
      left.push(environment)
      if (metadata?.deletionTimestamp === undefined) await environment.ask('delete', { deletionPolicy: 'Delete' })
    }
    for (const environment of left)
      await this.until(
        'it goes',
        () => environment.get(),
        seen => seen === undefined,
      )
    const code = await this.operator.stop()
    await this.#end()
    assert.equal(code, 0, this.operator.output.slice(-3000))
    await this.faked.assertSound()
  }

  /** What a look shows once it satisfies a condition. */
  async until<T>(what: string, look: () => Promise<T> | T, holds: (seen: T) => boolean): Promise<T> {
    for (const end = Date.now() + DEADLINE_MS; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      await sleep(25)
      assert.ok(Date.now() < end, `${what}: it is ${JSON.stringify(seen)}\n${this.operator.output.slice(-3000)}`)
    }
  }

  /** An environment of which only the namespace is there yet. */
  async prepared(): Promise<FakedEnvironment> {
    const environment = await FakedEnvironment.prepare(this.faked)
    this.#made.push(environment)
    return environment
  }

  /** An environment that is there, in a namespace of its own. */
  async made(spec: Partial<EnvironmentSpec> = {}): Promise<FakedEnvironment> {
    const environment = await this.prepared()
    await environment.ask('create', spec)
    await this.done(environment)
    return environment
  }

  /** Waits until what was asked for last is done. */
  done(environment: FakedEnvironment): Promise<void> {
    return environment.done({ deadlineMs: DEADLINE_MS, tell: () => this.operator.output.slice(-3000) })
  }

  /** Changes the spec as kubectl does, without an operation. */
  async edit(environment: FakedEnvironment, spec: Partial<EnvironmentSpec>): Promise<void> {
    const { uid } = (await environment.get())!.metadata
    await this.faked.store.patch(environmentType, environment.key, { spec }, { uid })
  }

  /** The reason of a condition. */
  async reason(environment: FakedEnvironment, type: ConditionType): Promise<string | undefined> {
    return conditionOf((await environment.get())?.status?.conditions, type)?.reason
  }

  /** What the environment's objects are called. */
  async names(environment: FakedEnvironment) {
    const { organizationId, projectId, environmentId } = (await environment.get())!.spec
    const name = instanceName({ organizationId, projectId, environmentId })
    const { uid } = (await environment.get())!.metadata
    return { uid, name, pod: `${name}-0`, claim: `${name}-${shortUid(uid)}`, app: `${name}-${shortUid(uid)}-app` }
  }

  /** The uid of its pod; undefined: there is none. */
  async podUid(environment: FakedEnvironment): Promise<string | undefined> {
    const { pod: name } = await this.names(environment)
    return (await this.faked.cluster.objects.get(POD, { ...environment.key, name }))?.metadata?.uid
  }

  /** What is told of it so far, as `type reason`, in order. */
  async told({ key }: FakedEnvironment): Promise<readonly string[]> {
    const events = await this.kubectl.must(['-n', key.namespace, 'get', 'events.events.k8s.io', '-o', 'json'])
    const { items } = JSON.parse(events) as { readonly items: readonly ToldEvent[] }
    return items
      .filter(({ regarding }) => regarding.kind === 'Environment' && regarding.name === key.name)
      .sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1))
      .map(({ type, reason }) => `${type} ${reason}`)
  }

  async claim(environment: FakedEnvironment): Promise<Claim | undefined> {
    return (await this.faked.cluster.objects.list(claims, { namespace: environment.key.namespace })).items[0]
  }
}
