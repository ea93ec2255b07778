import { isStoreError, StoreError } from '../store/store-error.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject, KubernetesObjects, ObjectKey, ObjectList, ObjectType } from './kubernetes-object.ts'
import { listPages } from './list-pages.ts'
import { collectionPath, labelSelector, objectPath } from './object-path.ts'

/** KubernetesObjects of an API server; `manager` is the field manager where a call names none. */
export const kubernetesObjects = (api: KubernetesApi, manager: string): KubernetesObjects => {
  const get = async <O extends KubernetesObject>(type: ObjectType<O>, key: ObjectKey): Promise<O | undefined> => {
    try {
      return await api.call<O>({ method: 'GET', path: objectPath(type, key) })
    } catch (error) {
      if (isStoreError(error, 'NotFound')) return undefined
      throw error
    }
  }
  /** A call that a webhook, a policy or a quota may refuse: their words do not always say what it was about. */
  const write = async <O extends KubernetesObject>(
    { kind }: ObjectType<O>,
    name = '',
    request: ApiRequest,
  ): Promise<O> => {
    try {
      return await api.call<O>(request)
    } catch (error) {
      if (!isStoreError(error) || error.refusal === undefined) throw error
      const { reason, message, violations, refusal } = error
      throw new StoreError(reason, message, {
        violations,
        refusal: { ...refusal, object: { kind, name } },
        cause: error,
      })
    }
  }
  return {
    get,
    list: async <O extends KubernetesObject>(
      type: ObjectType<O>,
      selector: Parameters<KubernetesObjects['list']>[1] = {},
    ): Promise<ObjectList<O>> =>
      listPages(
        api,
        collectionPath(type, selector.namespace),
        { labelSelector: labelSelector(selector.labels) },
        // Items of a list say no kind.
        object => ({ apiVersion: type.apiVersion, kind: type.kind, ...object }) as O,
      ),
    create: (type, object) =>
      write(type, object.metadata?.name, {
        method: 'POST',
        path: collectionPath(type, object.metadata?.namespace),
        query: { fieldManager: manager },
        body: { apiVersion: type.apiVersion, kind: type.kind, ...object },
      }),
    apply: (type, object, as = manager) =>
      write(type, object.metadata?.name, {
        method: 'PATCH',
        path: objectPath(type, keyOf(object)),
        query: { fieldManager: as, force: true },
        contentType: 'application/apply-patch+yaml',
        body: { apiVersion: type.apiVersion, kind: type.kind, ...object },
      }),
    merge: (type, key, patch, subresource) =>
      write(type, key.name, {
        method: 'PATCH',
        path: objectPath(type, key, subresource),
        query: { fieldManager: manager },
        contentType: 'application/merge-patch+json',
        body: patch,
      }),
    delete: async (type, key, { uid, resourceVersion, gracePeriodSeconds, propagation = 'Background' }) => {
      try {
        await write(type, key.name, {
          method: 'DELETE',
          path: objectPath(type, key),
          body: {
            apiVersion: 'v1',
            kind: 'DeleteOptions',
            preconditions: { uid, resourceVersion },
            gracePeriodSeconds,
            propagationPolicy: propagation,
          },
        })
      } catch (error) {
        if (isStoreError(error, 'NotFound')) return
        // Both preconditions fail alike: only a look tells whether it is ours that is stale, or another one's name.
        if (isStoreError(error, 'Conflict') && (await get(type, key))?.metadata?.uid !== uid) return
        throw error
      }
    },
  }
}

const keyOf = ({ metadata }: KubernetesObject): ObjectKey => {
  if (metadata?.name === undefined) throw new TypeError('Cannot apply an object without a name')
  return { namespace: metadata.namespace ?? '', name: metadata.name }
}
