/**
 * Plays the node on a cluster that has none: a Node object with heartbeats, pods that are bound, become Ready and end as
 * a kubelet lets them, and the trouble that real ones have: slow starts, crashes, exits that were not clean, a node that is lost.
 * No container runs. Everything else is the real thing: controllers, garbage collection, deletion with grace.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObjects, ObjectKey, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import { objectPath } from '../../runtime/kubernetes/object-path.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { NodeFaker } from './node-faker.ts'
import { type Exit, type PodState, podStatus } from './pod-status.ts'
import { watchObjects } from './watch-objects.ts'

export const POD: ObjectType<V1Pod> = { apiVersion: 'v1', kind: 'Pod', plural: 'pods' }

/** How a pod behaves. */
export interface PodBehaviour {
  /** From binding to Ready. */
  readonly startMs: number
  /** From the request to delete to the end of its containers; longer than its grace means that it is killed. */
  readonly stopMs: number
  /** What its containers end with when they were not killed. */
  readonly exitCode: number
}

export interface PodFakerOptions {
  readonly api: KubernetesApi
  readonly node?: string
  /** Whose pods; all by default, except those that another node has. */
  readonly namespaces?: readonly string[]
}

/** A container that was killed ends with 128 + SIGKILL. */
const KILLED = 137

const AGAIN_MS = 100

type Stage = 'new' | 'starting' | 'running' | 'ending'

interface FakedPod {
  pod: V1Pod
  stage: Stage
  /** Its server does, while it runs. */
  answers: boolean
  restarts: number
  lastExit?: Exit
  readonly ip: string
}

export class PodFaker {
  readonly node: string
  readonly #options: PodFakerOptions
  readonly #stop = new AbortController()
  readonly #pods = new Map<string, FakedPod>()
  /** The uids of the pods of a namespace: thousands are asked for. */
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #failures: unknown[] = []
  readonly #running: Promise<unknown>[] = []
  readonly #node: NodeFaker
  readonly #objects: KubernetesObjects
  #behave: (pod: V1Pod) => Partial<PodBehaviour> = () => ({})
  #addresses = 0

  private constructor(options: PodFakerOptions) {
    this.#options = options
    this.node = options.node ?? 'faked'
    this.#objects = kubernetesObjects(options.api, 'pod-faker')
    this.#node = new NodeFaker(this.#objects, this.node)
  }

  /** Makes the node and begins. */
  static async start(options: PodFakerOptions): Promise<PodFaker> {
    const faker = new PodFaker(options)
    const { signal } = faker.#stop
    const { beating } = await faker.#node.start(signal)
    faker.#running.push(
      beating,
      watchObjects(options.api, POD, signal, (uid, pod) => faker.#see(uid, pod)),
    )
    return faker
  }

  /** What went wrong in the faker itself; a test looks at its end. */
  get failures(): readonly unknown[] {
    return this.#failures
  }

  /** The uid of a pod with these labels that is ready; undefined: none is. */
  answering(namespace: string, labels: Readonly<Record<string, string>>): string | undefined {
    return [...(this.#byNamespace.get(namespace) ?? [])].find(uid => {
      const { stage, answers, pod } = this.#pods.get(uid)!
      const has = pod.metadata!.labels ?? {}
      return stage === 'running' && answers && Object.entries(labels).every(([name, value]) => has[name] === value)
    })
  }

  /** The Secrets that are mounted into a pod. */
  secretsOf(uid: string): readonly string[] {
    const volumes = this.#pods.get(uid)?.pod.spec?.volumes ?? []
    return volumes.flatMap(({ secret }) => secret?.secretName ?? [])
  }

  /** How pods start and end from now on, each one as this says; what is left out is quick and clean. */
  behave(how: Partial<PodBehaviour> | ((pod: V1Pod) => Partial<PodBehaviour>)): void {
    this.#behave = typeof how === 'function' ? how : () => how
  }

  /** The containers of a pod end like this and are started again, as its restart policy says. */
  async crash(key: ObjectKey, exit: Exit = { exitCode: 1 }): Promise<void> {
    const faked = this.#find(key)
    if (faked?.stage !== 'running') throw new Error(`${key.namespace}/${key.name} does not run here`)
    faked.restarts++
    faked.lastExit = exit
    faked.stage = 'starting'
    faked.answers = false
    await this.#report(faked, 'crashed', exit)
    this.#later(faked, this.#behaviour(faked.pod).startMs, () => this.#run(faked))
  }

  /** The containers of a pod that crashed and still wait run at last. */
  async startAgain(key: ObjectKey): Promise<void> {
    const faked = this.#find(key)
    if (faked?.stage !== 'starting') throw new Error(`${key.namespace}/${key.name} does not wait here`)
    await this.#run(faked)
  }

  #find({ namespace, name }: ObjectKey): FakedPod | undefined {
    return [...this.#pods.values()].find(
      ({ pod: { metadata } }) => metadata?.namespace === namespace && metadata.name === name,
    )
  }

  /** The node falls silent: it answers nothing, starts nothing, ends nothing. */
  async loseNode(): Promise<void> {
    await this.#node.lose()
    for (const { stage, pod } of this.#pods.values()) if (stage === 'running') await this.#doubt(pod)
  }

  /** What the controller of nodes does with a pod on one that fell silent by itself; one that says so itself it leaves. */
  async #doubt(known: V1Pod): Promise<void> {
    // Read anew: the watch may not have brought yet that it became ready.
    const pod = await this.#objects.get(POD, keyOf(known))
    if (pod?.metadata?.uid !== known.metadata!.uid) return
    const conditions = pod?.status?.conditions?.map(({ type, status }) =>
      type === 'Ready' ? { type, status: 'False', reason: 'NodeNotReady' } : { type, status },
    )
    const change = { metadata: { uid: known.metadata!.uid }, status: { conditions } }
    await this.#objects.merge(POD, keyOf(known), change, 'status')
  }

  /** The node is back and does what it missed. */
  async bringBackNode(): Promise<void> {
    await this.#node.bringBack()
    for (const faked of this.#pods.values()) {
      if (faked.stage === 'running') await this.#report(faked, 'ready')
      this.#advance(faked)
    }
  }

  /** Ends the faker; pods stay as they are. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.allSettled(this.#running)
  }

  #behaviour(pod: V1Pod): PodBehaviour {
    return { startMs: 20, stopMs: 20, exitCode: 0, ...this.#behave(pod) }
  }

  #see(uid: string, pod: V1Pod | undefined): void {
    if (pod === undefined) {
      this.#byNamespace.get(this.#pods.get(uid)?.pod.metadata?.namespace ?? '')?.delete(uid)
      this.#pods.delete(uid)
      return
    }
    const { namespaces } = this.#options
    if (namespaces?.includes(pod.metadata!.namespace!) === false) return
    if (!this.#isOurs(pod.spec)) return
    const known = this.#pods.get(uid)
    if (known === undefined) {
      // One that an earlier faker started runs on.
      const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
      const ip = pod.status?.podIP ?? this.#nextAddress()
      this.#pods.set(uid, { pod, stage: ready ? 'running' : 'new', answers: ready, restarts: 0, ip })
      const namespace = pod.metadata!.namespace!
      this.#byNamespace.set(namespace, (this.#byNamespace.get(namespace) ?? new Set()).add(uid))
    } else known.pod = pod
    this.#advance(this.#pods.get(uid)!)
  }

  /** It is on our node; or on none, and not meant for the scheduler of somebody else. */
  #isOurs({ nodeName, schedulerName }: Partial<NonNullable<V1Pod['spec']>> = {}): boolean {
    if (nodeName !== undefined) return nodeName === this.node
    return schedulerName === undefined || schedulerName === 'default-scheduler' || schedulerName === this.node
  }

  #advance(faked: FakedPod): void {
    if (!this.#node.isThere || this.#pods.get(faked.pod.metadata!.uid!) !== faked) return
    const { pod } = faked
    const behaviour = this.#behaviour(pod)
    if (pod.metadata?.deletionTimestamp !== undefined) {
      if (faked.stage === 'ending') return
      faked.stage = 'ending'
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 30) * 1000
      const killed = behaviour.stopMs > graceMs
      this.#later(faked, Math.min(behaviour.stopMs, graceMs), () =>
        this.#end(faked, killed ? KILLED : behaviour.exitCode),
      )
    } else if (faked.stage === 'new') {
      faked.stage = 'starting'
      this.#later(faked, 0, async () => {
        if (pod.spec?.nodeName === undefined) await this.#bind(pod)
        this.#later(faked, behaviour.startMs, () => this.#run(faked))
      })
    }
  }

  /** What happens after a while, unless the node is lost, the pod is gone, or the faker was stopped by then. */
  #later(faked: FakedPod, ms: number, step: () => Promise<void>): void {
    const { signal } = this.#stop
    const { stage } = faked
    const act = async (): Promise<void> => {
      if (ms > 0) await sleep(ms, undefined, { signal })
      if (faked.stage !== stage || !this.#pods.has(faked.pod.metadata!.uid!)) return
      if (this.#node.isThere) await step()
      else faked.stage = 'new'
    }
    act().catch((error: unknown) => {
      if (signal.aborted || isStoreError(error, 'NotFound')) return
      const expected = isStoreError(error, 'Conflict', 'Unavailable', 'TooManyRequests') || isOfEndingNamespace(error)
      if (!expected) this.#failures.push(error)
      // A kubelet tries again as long as the pod is there.
      faked.stage = 'new'
      setTimeout(() => this.#advance(faked), AGAIN_MS)
    })
  }

  /** Its server answers once kubelet has said that it is ready, not before: who meets it may look at its status next. */
  async #run(faked: FakedPod): Promise<void> {
    const { restarts } = faked
    faked.stage = 'running'
    await this.#report(faked, 'ready')
    // Unless it crashed meanwhile.
    if (faked.restarts === restarts) faked.answers = true
    // It fell silent meanwhile.
    if (!this.#node.isThere) await this.#doubt(faked.pod)
  }

  async #end(faked: FakedPod, exitCode: number): Promise<void> {
    await this.#report(faked, 'ended', { exitCode })
    const { uid = '' } = faked.pod.metadata!
    await this.#objects.delete(POD, keyOf(faked.pod), { uid, gracePeriodSeconds: 0 })
  }

  async #bind(pod: V1Pod): Promise<void> {
    const { name, namespace, uid } = pod.metadata!
    const target = { apiVersion: 'v1', kind: 'Node', name: this.node }
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target }
    await this.#options.api.call({ method: 'POST', path: objectPath(POD, keyOf(pod), 'binding'), body })
  }

  async #report(faked: FakedPod, how: PodState['how'], exit: Exit = { exitCode: 0 }): Promise<void> {
    const { pod, restarts, lastExit, ip } = faked
    const status = podStatus(pod, { how, exit, restarts, lastExit, ip })
    await this.#objects.merge(POD, keyOf(pod), { metadata: { uid: pod.metadata!.uid }, status }, 'status')
  }

  #nextAddress(): string {
    const serial = ++this.#addresses
    return `10.${200 + (serial >> 16)}.${(serial >> 8) & 255}.${serial & 255}`
  }
}

/** Nothing is made in a namespace that ends, a binding neither: its pods wait until they are deleted. */
export const isOfEndingNamespace = (error: unknown): boolean =>
  isStoreError(error, 'Forbidden') && error.violations.some(({ field }) => field === 'metadata.namespace')

const keyOf = ({ metadata }: V1Pod): ObjectKey => ({ namespace: metadata!.namespace!, name: metadata!.name! })
