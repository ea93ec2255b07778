/** Objects of one of Kubernetes' own kinds, read without a call and never older than our own last write. */
import type { Cache } from '../controller/cache.ts'
import { LiveView } from '../controller/live-view.ts'
import type { LiveViewObserver } from '../controller/observers.ts'
import type { KubernetesObject, KubernetesObjects, ObjectKey, ObjectType } from './kubernetes-object.ts'
import type { Observed } from './object-source.ts'
import { metadataOf } from './resource-from-object.ts'

export interface LiveObjectsOptions<O extends KubernetesObject> {
  readonly objects: KubernetesObjects
  readonly type: ObjectType<O>
  readonly cache: Pick<Cache<Observed<O>>, 'get'>
  /** How far the cache has seen everything; undefined: nothing yet. */
  readonly seenUpTo: () => string | undefined
  readonly observer?: LiveViewObserver | undefined
}

export class LiveObjects<O extends KubernetesObject> {
  readonly #objects: KubernetesObjects
  readonly #type: ObjectType<O>
  readonly #view: LiveView<Observed<O>>

  constructor({ objects, type, cache, seenUpTo, observer }: LiveObjectsOptions<O>) {
    this.#objects = objects
    this.#type = type
    const read = async (key: ObjectKey): Promise<Observed<O> | undefined> => {
      const object = await objects.get(type, key)
      return object === undefined ? undefined : this.#observed(object)
    }
    this.#view = new LiveView({ cache, seenUpTo, read, observer })
  }

  /** The object as it is to the best of our knowledge; one that we asked to delete has a deletionTimestamp. */
  get(key: ObjectKey): Observed<O> | undefined {
    return this.#view.get(key)
  }

  /** The cache has changed there: nothing is remembered beside it that it has seen. */
  cacheChanged(key: ObjectKey): void {
    this.#view.cacheChanged(key)
  }

  /** As `get`, after asking the API server where that is not certain. */
  certain(key: ObjectKey): Promise<Observed<O> | undefined> {
    return this.#view.certain(key)
  }

  /** The object from the API server itself. */
  read(key: ObjectKey): Promise<Observed<O> | undefined> {
    return this.#view.read(key)
  }

  /** @throws StoreError */
  apply(object: O): Promise<Observed<O>> {
    const key = { namespace: object.metadata?.namespace ?? '', name: object.metadata?.name ?? '' }
    return this.#view.write(key, async () => this.#observed(await this.#objects.apply(this.#type, object)))
  }

  /** @throws StoreError */
  merge(key: ObjectKey, patch: Readonly<Record<string, unknown>>): Promise<Observed<O>> {
    return this.#view.write(key, async () => this.#observed(await this.#objects.merge(this.#type, key, patch)))
  }

  /** Harmless when it is gone. @throws StoreError */
  async delete(key: ObjectKey, options: Parameters<KubernetesObjects['delete']>[2]): Promise<void> {
    await this.#view.write(key, async () => {
      await this.#objects.delete(this.#type, key, options)
      return undefined
    })
    this.#view.deletionAsked(key, options.uid)
  }

  #observed(object: O): Observed<O> {
    const { apiVersion, kind } = this.#type
    return { ...object, apiVersion, kind, metadata: metadataOf(object) } as unknown as Observed<O>
  }
}
