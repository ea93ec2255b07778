import { randomUUID } from 'node:crypto'
import { keyOf } from '../../lib/model/resource.ts'
import { apiCluster } from '../../testkit/kubernetes/cluster.ts'
import { WIDGET_CRD } from '../../testkit/kubernetes/widget-crd.ts'
import { describeResourceStore } from '../store/resource-store.contract.ts'
import { isStoreError } from '../store/store-error.ts'
import { newWidget, widgets } from '../store/widget.contract.ts'
import { KubernetesResourceStore } from './kubernetes-resource-store.ts'

/** Whether the store still tells what came after a version: true once a watch from there gets an event. */
const reachesBackTo = async (store: KubernetesResourceStore, from: string): Promise<boolean> => {
  try {
    for await (const _ of store.watch(widgets, { from, signal: AbortSignal.timeout(5_000) })) return true
    return true
  } catch (error) {
    if (isStoreError(error, 'Gone')) return false
    // While the kind is served anew.
    if (isStoreError(error, 'Unavailable', 'NotFound', 'TooManyRequests')) return true
    throw error
  }
}

describe('on an API server', () => {
  // Things happen elsewhere on a cluster. Without them, bookmarks wait for etcd to tell of its progress: by default every 10 min.
  let busy: NodeJS.Timeout | undefined

  beforeEach(async function () {
    if (!this.currentTest!.title.includes('bookmarks')) return
    const cluster = await apiCluster()
    const store = new KubernetesResourceStore(cluster.api, 'elsewhere')
    const made = await store.create(widgets, newWidget(await cluster.namespace('kube'), 'elsewhere'))
    let size = 0
    busy = setInterval(() => {
      size = (size + 1) % 10
      store.patch(widgets, keyOf(made), { spec: { size } }, { uid: made.metadata.uid }).catch(() => undefined)
    }, 2_000)
  })
  afterEach(() => {
    clearInterval(busy)
  })

  describeResourceStore('KubernetesResourceStore', async () => {
    const cluster = await apiCluster()
    await cluster.installWidget()
    const store = new KubernetesResourceStore(cluster.api, 'first')
    return {
      connect: async clientName => new KubernetesResourceStore(await cluster.open(clientName), clientName),
      namespace: () => cluster.namespace('kube'),
      // An API server that serves a kind anew knows of no change before: as if it had been restarted, or etcd compacted.
      expireVersions: async () => {
        const namespace = await cluster.namespace('kube')
        const { resourceVersion } = await store.list(widgets, { namespace })
        await store.create(widgets, newWidget(namespace, 'after'))
        await cluster.api.call({
          method: 'PATCH',
          path: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${WIDGET_CRD.metadata.name}`,
          contentType: 'application/json-patch+json',
          body: [
            {
              op: 'add',
              path: '/spec/versions/0/schema/openAPIV3Schema/description',
              value: `Anew ${randomUUID()}`,
            },
          ],
        })
        while (await reachesBackTo(store, resourceVersion)) await new Promise(resolve => setTimeout(resolve, 100))
      },
      bookmarkWithinMs: 75_000,
      close: async () => undefined,
    }
  })
})
