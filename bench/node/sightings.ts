/** When what happens to an instance was first seen on the cluster, by a watch of each kind. */
import type { V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS, instanceName } from '../../crds/metadata.ts'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { CLAIM } from '../../testkit/kubernetes/claim-faker.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { watchObjects } from '../../testkit/kubernetes/watch-objects.ts'
import { STATEFUL_SET } from './floor.ts'

/** In the order in which they come. */
export const MILESTONES = [
  'resource',
  'StatefulSet',
  'pod',
  'scheduled',
  'container',
  'accepting',
  'superuser session',
  'pod ready',
  'status ready',
] as const
export type Milestone = (typeof MILESTONES)[number]

const ENVIRONMENT = environmentType as unknown as ObjectType<Environment & KubernetesObject>

const ofPod = ({ spec, status }: V1Pod): readonly Milestone[] => [
  'pod',
  ...(spec?.nodeName === undefined ? [] : (['scheduled'] as const)),
  ...(status?.containerStatuses?.[0]?.state?.running === undefined ? [] : (['container'] as const)),
  ...(isReady(status) ? (['pod ready'] as const) : []),
]

const isReady = (status: V1Pod['status']): boolean =>
  status?.conditions?.some(({ type, status: met }) => type === 'Ready' && met === 'True') === true

/** Remembers, for each namespace and instance, the epoch milliseconds of each milestone. */
export class Sightings {
  readonly #seen = new Map<string, Map<Milestone, number>>()
  readonly #there = new Set<string>()
  readonly #waiting = new Set<() => void>()
  readonly #stop = new AbortController()
  readonly #running: readonly Promise<void>[]

  constructor(api: KubernetesApi) {
    const see = (
      namespace: string | undefined,
      instance: string | undefined,
      milestones: readonly Milestone[],
    ): void => {
      const key = `${namespace}/${instance}`
      const seen = this.#seen.get(key) ?? new Map<Milestone, number>()
      this.#seen.set(key, seen)
      for (const milestone of milestones) if (!seen.has(milestone)) seen.set(milestone, Date.now())
      for (const look of this.#waiting) look()
    }
    const follow = <O extends KubernetesObject>(type: ObjectType<O>, look: (object: O) => void): Promise<void> =>
      watchObjects(api, type, this.#stop.signal, (_, object) => {
        if (object !== undefined) look(object)
      })
    const pods = watchObjects<V1Pod>(api, POD, this.#stop.signal, (uid, pod) => {
      if (pod === undefined) this.#there.delete(uid)
      else {
        this.#there.add(uid)
        see(pod.metadata?.namespace, pod.metadata?.name?.replace(/-0$/, ''), ofPod(pod))
      }
      for (const look of this.#waiting) look()
    })
    this.#running = [
      pods,
      follow(STATEFUL_SET, ({ metadata }) => see(metadata?.namespace, metadata?.name, ['StatefulSet'])),
      follow<V1PersistentVolumeClaim>(CLAIM, ({ metadata }) => {
        if (metadata?.annotations?.[ANNOTATIONS.initialized] === 'true')
          see(metadata.namespace, metadata.name?.replace(/-[0-9a-f]{8}$/, ''), ['superuser session'])
      }),
      follow(ENVIRONMENT, ({ metadata, spec, status }) =>
        see(metadata.namespace, instanceName(spec), [
          'resource',
          ...(status?.phase === 'ready' ? (['status ready'] as const) : []),
        ]),
      ),
    ]
  }

  /** What was seen of one so far. */
  of(namespace: string, instance: string): ReadonlyMap<Milestone, number> {
    return this.#seen.get(`${namespace}/${instance}`) ?? new Map()
  }

  /** Forgets what was seen of one: a new life begins. */
  forget(namespace: string, instance: string): void {
    this.#seen.delete(`${namespace}/${instance}`)
  }

  /** Resolves when a milestone is reached. */
  reached(namespace: string, instance: string, milestone: Milestone): Promise<void> {
    return this.#until(`${instance} reaches ${milestone}`, () => this.of(namespace, instance).has(milestone))
  }

  /** Resolves when a pod is not there any more. */
  gone(uid: string): Promise<void> {
    return this.#until(`pod ${uid} is gone`, () => !this.#there.has(uid))
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  #until(what: string, holds: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!holds()) return
        clearTimeout(late)
        this.#waiting.delete(look)
        resolve()
      }
      const late = setTimeout(() => {
        this.#waiting.delete(look)
        reject(new Error(`${what}: not within two minutes`))
      }, 120_000)
      this.#waiting.add(look)
      look()
    })
  }
}
