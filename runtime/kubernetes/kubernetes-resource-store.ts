import type { Resource, ResourceKey, ResourceType } from '../../lib/model/resource.ts'
import type {
  MergePatch,
  NewResource,
  Preconditions,
  ResourceList,
  ResourcePatch,
  ResourceStore,
  Selector,
  SpecOf,
  WatchEvent,
} from '../store/resource-store.ts'
import { isStoreError, StoreError } from '../store/store-error.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { listObjects } from './list-objects.ts'
import { collectionPath, labelSelector, objectPath, type ServedType } from './object-path.ts'
import { metadataOf, resourceFromObject } from './resource-from-object.ts'
import { watchObjects } from './watch-objects.ts'

/** Writers of one status are one; more than a few races are not by chance. */
const STATUS_ATTEMPTS = 5

/** As the API server answers it for the object itself. */
const foreignUid = ({ kind }: { readonly kind: string }, { name }: ResourceKey): StoreError =>
  new StoreError('Invalid', `${kind} "${name}" is invalid: metadata.uid: it is another object of this name`, {
    violations: [{ field: 'metadata.uid', message: 'it is another object of this name' }],
  })

/**
 * The ResourceStore of a Kubernetes cluster: custom resources, judged by their CRDs and admission policies.
 * `clientName` is the field manager of every write.
 */
export class KubernetesResourceStore implements ResourceStore {
  readonly #api: KubernetesApi
  readonly #clientName: string
  #identity: string | undefined

  constructor(api: KubernetesApi, clientName: string) {
    this.#api = api
    this.#clientName = clientName
  }

  /** The uid of the namespace kube-system, which lives as long as the cluster. */
  async identity(): Promise<string> {
    if (this.#identity === undefined) {
      const path = '/api/v1/namespaces/kube-system'
      const { metadata } = await this.#api.call<{ metadata: { uid: string } }>({ method: 'GET', path })
      this.#identity = metadata.uid
    }
    return this.#identity
  }

  async get<R extends Resource>(type: ResourceType<R>, key: ResourceKey): Promise<R | undefined> {
    try {
      const object = await this.#api.call<KubernetesObject>({ method: 'GET', path: objectPath(type, key) })
      return resourceFromObject(type, object)
    } catch (error) {
      if (isStoreError(error, 'NotFound')) return undefined
      throw error
    }
  }

  async list<R extends Resource>(type: ResourceType<R>, selector: Selector = {}): Promise<ResourceList<R>> {
    const query = { labelSelector: labelSelector(selector.labels) }
    return listObjects(this.#api, collectionPath(type, selector.namespace), query, object =>
      resourceFromObject(type, object),
    )
  }

  async *watch<R extends Resource>(
    type: ResourceType<R>,
    options: { readonly from: string; readonly selector?: Selector; readonly signal: AbortSignal },
  ): AsyncGenerator<WatchEvent<R>> {
    const { from, selector = {}, signal } = options
    const following = { from, labelSelector: labelSelector(selector.labels), signal }
    for await (const event of watchObjects(this.#api, collectionPath(type, selector.namespace), following))
      yield event.type === 'bookmark' ? event : { type: event.type, object: resourceFromObject<R>(type, event.object) }
  }

  async create<R extends Resource>(type: ResourceType<R>, resource: NewResource<SpecOf<R>>): Promise<R> {
    const { namespace, name, labels, annotations, finalizers, spec } = resource
    const object = await this.#api.call<KubernetesObject>({
      method: 'POST',
      path: collectionPath(type, namespace),
      query: { fieldManager: this.#clientName },
      body: {
        apiVersion: type.apiVersion,
        kind: type.kind,
        metadata: { namespace, name, labels, annotations, finalizers },
        spec,
      },
    })
    return resourceFromObject(type, object)
  }

  async patch<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    { metadata, spec }: ResourcePatch,
    preconditions: Preconditions,
  ): Promise<R> {
    return this.#merge(type, objectPath(type, key), { metadata: { ...metadata, ...only(preconditions) }, spec })
  }

  async patchStatus<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    status: MergePatch,
    preconditions: Preconditions,
  ): Promise<R> {
    const path = objectPath(type, key, 'status')
    if (preconditions.resourceVersion !== undefined)
      return this.#merge(type, path, { metadata: only(preconditions), status })
    // A status write heeds no uid, so that it would tell one object's status of another. A version belongs to one object.
    for (let attempt = 1; ; attempt++) {
      const { uid, resourceVersion } = await this.#metadata(type, key)
      if (uid !== preconditions.uid) throw foreignUid(type, key)
      try {
        return await this.#merge(type, path, { metadata: { uid, resourceVersion }, status })
      } catch (error) {
        if (attempt === STATUS_ATTEMPTS || !isStoreError(error, 'Conflict')) throw error
      }
    }
  }

  async delete<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    preconditions: Preconditions,
  ): Promise<void> {
    await this.#api.call({
      method: 'DELETE',
      path: objectPath(type, key),
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions: only(preconditions),
        propagationPolicy: 'Background',
      },
    })
  }

  async #metadata(type: ServedType, key: ResourceKey): Promise<{ uid: string; resourceVersion: string }> {
    return metadataOf(await this.#api.call<KubernetesObject>({ method: 'GET', path: objectPath(type, key) }))
  }

  /** The API server itself writes nothing when a patch changes nothing. */
  async #merge<R extends Resource>(type: ResourceType<R>, path: string, body: object): Promise<R> {
    const object = await this.#api.call<KubernetesObject>({
      method: 'PATCH',
      path,
      query: { fieldManager: this.#clientName },
      contentType: 'application/merge-patch+json',
      body,
    })
    return resourceFromObject(type, object)
  }
}

/** Callers may give a whole metadata for preconditions: the rest of it must not be written. */
const only = ({ uid, resourceVersion }: Preconditions): Preconditions => ({
  uid,
  ...(resourceVersion === undefined ? {} : { resourceVersion }),
})
