/**
 * Follows what projects' namespaces need: three watches, of which no more is kept than whether each object is as it should be.
 * Nobody asks the API server as long as nobody changes anything.
 */
import { LABELS, OPERATOR } from '../../../crds/metadata.ts'
import { Cache } from '../../../runtime/controller/cache.ts'
import type { ReflectorHealth } from '../../../runtime/controller/observers.ts'
import { Reflector } from '../../../runtime/controller/reflector.ts'
import { hasDrifted } from '../../../runtime/kubernetes/drift.ts'
import type { KubernetesObject, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import { type Observed, objectSource } from '../../../runtime/kubernetes/object-source.ts'
import { networkPolicies, roleBindings, serviceAccounts } from './object-types.ts'
import { type ProjectObject, projectObjects } from './project-objects.ts'
import type { WatchOptions } from './watch-cluster.ts'

/** An object of a project, as far as it is remembered. */
type Judged = Observed<KubernetesObject> & { readonly sound: boolean }

export interface WatchedProjects {
  /** Whether all that a namespace needs is there, and as it should be, as far as was seen. Asks nobody. */
  isSound(namespace: string): boolean
  /** Calls back with a namespace of which something went, or is not as it should be any more. Never unsubscribed. */
  onChange(listener: (namespace: string) => void): void
  /** Resolves once all that is there was seen. */
  start(): Promise<void>
  stop(): Promise<void>
  health(): readonly (ReflectorHealth & { readonly name: string })[]
}

export const watchProjects = (options: WatchOptions): WatchedProjects => {
  const { api, settings, log, metrics, watchIdleMs: idleTimeoutMs } = options
  const wishesFor = (namespace: string): readonly ProjectObject[] => {
    const { bindings, others } = projectObjects(namespace, settings)
    return [...bindings, ...others]
  }
  const judged = (object: Observed<KubernetesObject>): Judged => {
    const { namespace, name, uid, resourceVersion } = object.metadata
    const wish = wishesFor(namespace).find(
      ({ type, object: { metadata } }) => type.kind === object.kind && metadata?.name === name,
    )
    return {
      ...{ apiVersion: object.apiVersion, kind: object.kind, spec: undefined },
      metadata: { ...NO_MORE, namespace, name, uid, resourceVersion },
      sound: wish === undefined || !hasDrifted(wish.object, object),
    }
  }
  const follow = (type: ObjectType) => {
    const cache = new Cache<Judged>({ log })
    const source = objectSource(api, type, judged)
    const reflector = new Reflector<Judged>({
      ...{ store: source.store, type: source.type, sink: cache, log, metrics, idleTimeoutMs },
      selector: { labels: { [LABELS.managedBy]: OPERATOR } },
    })
    return { kind: type.kind, cache, reflector }
  }
  const followed = [serviceAccounts, networkPolicies, roleBindings].map(type => follow(type))
  const stopping = new AbortController()
  return {
    isSound: namespace =>
      wishesFor(namespace).every(({ type, object, needed }) => {
        const key = { namespace, name: object.metadata?.name ?? '' }
        const seen = followed.find(({ kind }) => kind === type.kind)?.cache.get(key)
        return seen === undefined ? !needed : seen.sound
      }),
    onChange: listener => {
      for (const { cache } of followed)
        cache.subscribe(({ type: change, object }) => {
          if (change === 'deleted' || !object.sound) listener(object.metadata.namespace)
        })
    },
    start: async () => {
      for (const { reflector } of followed) reflector.start()
      await Promise.all(followed.map(({ cache }) => cache.waitForSync(stopping.signal)))
    },
    stop: async () => {
      stopping.abort(new Error('The host stopped before it had seen the projects'))
      await Promise.all(followed.map(({ reflector }) => reflector.stop()))
    },
    health: () => followed.map(({ reflector }) => ({ name: reflector.name, ...reflector.health() })),
  }
}

const NO_MORE = {
  generation: 0,
  creationTimestamp: '',
  finalizers: [],
  labels: {},
  annotations: {},
  ownerReferences: [],
}
