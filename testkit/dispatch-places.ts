/** Where the resources of a DispatchWorld are: in an embedded store of its own, or in a cluster's API server. */

import { kubernetesProjectNamespaces } from '../apiserver/dispatch/kubernetes-project-namespaces.ts'
import type { ProjectNamespaces, ProjectPlace } from '../apiserver/dispatch/project-namespaces.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import { environmentType } from '../crds/environment-type.ts'
import { LABELS, labelValue } from '../crds/metadata.ts'
import { keyOf, type Resource, type ResourceType } from '../lib/model/resource.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { kubernetesObjects } from '../runtime/kubernetes/kubernetes-objects.ts'
import { KubernetesResourceStore } from '../runtime/kubernetes/kubernetes-resource-store.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { isStoreError } from '../runtime/store/store-error.ts'
import { storeDatabase } from './embedded-store.ts'
import { apiCluster, namespaces } from './kubernetes/cluster.ts'
import { OPERATOR_NAMESPACE } from './standin-operator.ts'

export interface DispatchPlace {
  /** The client of the store that bears a name. */
  client(name: string): ResourceStore
  readonly projectNamespaces?: ProjectNamespaces
  /** What is on record of who asked for a deletion; undefined: nothing. */
  deletedBy(clientName: string): string | undefined
  close(): Promise<void>
}

/** Of no project. */
export const ANOTHER_NAMESPACE = 'svc-another-namespace'

export type OpenPlace = (project: ProjectPlace) => Promise<DispatchPlace>

/** An embedded store of its own. */
export const embeddedPlace: OpenPlace = async () => {
  const url = await storeDatabase()
  const clients = new Map<string, EmbeddedResourceStore>()
  return {
    deletedBy: name => name,
    client: name => {
      const store = clients.get(name) ?? new EmbeddedResourceStore({ url, clientName: name, pollEveryMs: 500 })
      clients.set(name, store)
      return store
    },
    close: async () => {
      for (const store of clients.values()) await store.close()
    },
  }
}

/** A cluster's API server: nothing of the project is in it at first, nor afterwards. */
export const clusterPlace: OpenPlace = async ({ organizationId, projectId, namespace }) => {
  const cluster = await apiCluster()
  await cluster.installKinds()
  const labels = { [LABELS.organization]: labelValue(organizationId), [LABELS.project]: labelValue(projectId) }
  const places = [namespace, OPERATOR_NAMESPACE, ANOTHER_NAMESPACE]
  for (const metadata of [{ name: namespace, labels }, { name: OPERATOR_NAMESPACE }, { name: ANOTHER_NAMESPACE }])
    await cluster.objects.create(namespaces, { metadata }).catch((error: unknown) => {
      if (!isStoreError(error, 'AlreadyExists')) throw error
    })
  const tidier = new KubernetesResourceStore(cluster.api, 'svc-test')
  const remove = async <R extends Resource>(type: ResourceType<R>, at: string): Promise<void> => {
    for (const item of (await tidier.list(type, { namespace: at })).items) {
      const { uid } = item.metadata
      // Policies that others left in the cluster refuse to delete a protected one.
      const spec = type.kind === environmentType.kind ? { deletionProtection: false } : {}
      await tidier.patch(type, keyOf(item), { metadata: { finalizers: [] }, spec }, { uid }).catch(gone)
      await tidier.delete(type, keyOf(item), { uid }).catch(gone)
    }
  }
  const empty = async (): Promise<void> => {
    for (const place of [namespace, ANOTHER_NAMESPACE]) await remove(environmentType, place)
    await remove(deletionRecordType, OPERATOR_NAMESPACE)
  }
  await empty()
  const clients = new Map<string, ResourceStore>()
  return {
    // The API server keeps no trace of who asked for it.
    deletedBy: () => undefined,
    projectNamespaces: kubernetesProjectNamespaces(kubernetesObjects(cluster.api, 'svc-apiserver')),
    client: name => {
      const store = clients.get(name) ?? within(new KubernetesResourceStore(cluster.api, name), new Set(places))
      clients.set(name, store)
      return store
    },
    close: empty,
  }
}

/** A store of which only these namespaces are seen: what others have in the same cluster is none of a test's business. */
const within = (store: ResourceStore, places: ReadonlySet<string>): ResourceStore => ({
  identity: () => store.identity(),
  get: (type, key) => store.get(type, key),
  list: async (type, selector) => {
    const list = await store.list(type, selector)
    return { ...list, items: list.items.filter(({ metadata }) => places.has(metadata.namespace)) }
  },
  watch: async function* (type, options) {
    for await (const event of store.watch(type, options))
      if (event.type === 'bookmark' || places.has(event.object.metadata.namespace)) yield event
      else yield { type: 'bookmark', resourceVersion: event.object.metadata.resourceVersion }
  },
  create: (type, resource) => store.create(type, resource),
  patch: (type, key, patch, pre) => store.patch(type, key, patch, pre),
  patchStatus: (type, key, status, pre) => store.patchStatus(type, key, status, pre),
  delete: (type, key, pre) => store.delete(type, key, pre),
})

const gone = (error: unknown): void => {
  if (!isStoreError(error, 'NotFound', 'Conflict')) throw error
}
