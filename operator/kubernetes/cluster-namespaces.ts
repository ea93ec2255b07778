import { Cache } from '../../runtime/controller/cache.ts'
import type { ControlMetrics, ReflectorHealth } from '../../runtime/controller/observers.ts'
import { Reflector } from '../../runtime/controller/reflector.ts'
import { namespaces as namespaceType } from '../../runtime/kubernetes/core-kinds.ts'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject, KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type Observed, objectSource } from '../../runtime/kubernetes/object-source.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { NamespaceFacts, Namespaces } from '../environment/namespaces.ts'

type Namespace = Observed<KubernetesObject>

export interface ClusterNamespacesOptions {
  readonly api: KubernetesApi
  readonly objects: KubernetesObjects
  readonly log: Log
  readonly metrics?: ControlMetrics | undefined
  /** How long the watch may be silent until it is opened anew. */
  readonly watchIdleMs?: number | undefined
}

/** The cluster's namespaces, from a cache of their labels. */
export interface ClusterNamespaces extends Namespaces {
  readonly name: string
  health(): ReflectorHealth
  /** Begins to follow them; resolves once all that are there were seen. */
  start(): Promise<void>
  stop(): Promise<void>
}

export const clusterNamespaces = (options: ClusterNamespacesOptions): ClusterNamespaces => {
  const { api, objects, log, metrics, watchIdleMs: idleTimeoutMs } = options
  const cache = new Cache<Namespace>({ log })
  const name = 'operator/Namespace'
  const reflector = new Reflector({
    ...objectSource(api, namespaceType, labelsOnly),
    ...{ sink: cache, log, metrics, name, idleTimeoutMs },
  })
  const stopping = new AbortController()
  return {
    name,
    health: () => reflector.health(),
    start: async () => {
      reflector.start()
      await cache.waitForSync(stopping.signal)
    },
    stop: async () => {
      stopping.abort(new Error('The namespaces were let go of before all of them had been seen'))
      await reflector.stop()
    },
    look: async (namespace, { fresh = false } = {}) => {
      const cached = fresh ? undefined : cache.get({ namespace: '', name: namespace })
      const found = cached ?? (await objects.get(namespaceType, { namespace: '', name: namespace }))
      return found === undefined ? undefined : factsOf(found)
    },
    onChange: listener =>
      cache.subscribe(({ type, object, old, initial }) => {
        if (initial || type === 'deleted') return
        if (old === undefined || !sameFacts(factsOf(old), factsOf(object))) listener(object.metadata.name)
      }),
  }
}

const labelsOnly = ({ apiVersion, kind, metadata }: Namespace): Namespace => ({
  ...{ apiVersion, kind, spec: undefined },
  metadata: { ...metadata, annotations: {} },
})

const factsOf = ({ metadata }: KubernetesObject): NamespaceFacts => ({
  labels: metadata?.labels ?? {},
  terminating: metadata?.deletionTimestamp !== undefined,
})

const sameFacts = (a: NamespaceFacts, b: NamespaceFacts): boolean =>
  a.terminating === b.terminating &&
  Object.keys(a.labels).length === Object.keys(b.labels).length &&
  Object.entries(a.labels).every(([name, value]) => b.labels[name] === value)
