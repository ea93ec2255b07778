import type { ObjectMetadata, Resource, ResourceType } from '../../lib/model/resource.ts'
import type { ResourceStore, WatchEvent } from '../store/resource-store.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject, ObjectType } from './kubernetes-object.ts'
import { listObjects } from './list-objects.ts'
import { collectionPath, labelSelector } from './object-path.ts'
import { metadataOf } from './resource-from-object.ts'
import { watchObjects } from './watch-objects.ts'

/** An object of one of Kubernetes' own kinds as a Cache keeps it: its metadata have no gaps and no managedFields. */
export type Observed<O extends KubernetesObject> = Omit<O, 'apiVersion' | 'kind' | 'metadata' | 'spec'> & {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMetadata
  readonly spec: O extends { readonly spec?: infer Spec } ? Spec : undefined
}

/** What a Reflector reads a kind from: `new Reflector({ ...objectSource(api, pods), selector, sink: cache, log })`. */
export interface ObjectSource<R extends Resource> {
  readonly store: Pick<ResourceStore, 'list' | 'watch'>
  readonly type: ResourceType<R>
}

/**
 * Lists and watches one of Kubernetes' own kinds.
 * @param trim strips what nobody reads, before an object is kept
 */
export const objectSource = <O extends KubernetesObject>(
  api: KubernetesApi,
  type: ObjectType<O>,
  trim: (object: Observed<O>) => Observed<O> = object => object,
): ObjectSource<Observed<O>> => {
  const observed = (object: KubernetesObject): Observed<O> =>
    // Items of a list say no kind. The API server has judged them: this is where their type comes from.
    trim({
      ...object,
      apiVersion: type.apiVersion,
      kind: type.kind,
      metadata: metadataOf(object),
    } as unknown as Observed<O>)
  const store: Pick<ResourceStore, 'list' | 'watch'> = {
    list: async (_type, { namespace, labels } = {}) => {
      const path = collectionPath(type, namespace)
      const list = await listObjects(api, path, { labelSelector: labelSelector(labels) }, observed)
      return list as never
    },
    watch: (_type, { from, selector = {}, signal }) => {
      const path = collectionPath(type, selector.namespace)
      const events = watchObjects(api, path, { from, labelSelector: labelSelector(selector.labels), signal })
      return changes(events, observed) as AsyncIterable<never>
    },
  }
  return {
    store,
    // The API server judges what is written; a reflector only reads.
    type: {
      apiVersion: type.apiVersion,
      kind: type.kind,
      plural: type.plural,
      validate: () => [],
      prune: spec => spec,
      admitDelete: () => undefined,
    },
  }
}

async function* changes<R>(
  events: ReturnType<typeof watchObjects>,
  observed: (object: KubernetesObject) => R,
): AsyncGenerator<WatchEvent<R>> {
  for await (const event of events)
    yield event.type === 'bookmark' ? event : { type: event.type, object: observed(event.object) }
}
