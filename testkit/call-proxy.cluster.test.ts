import assert from 'node:assert/strict'
import type { V1ConfigMap } from '@kubernetes/client-node'
import type { ObjectType } from '../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../runtime/kubernetes/kubernetes-objects.ts'
import { openKubernetesApi } from '../runtime/kubernetes/open-kubernetes-api.ts'
import { isStoreError } from '../runtime/store/store-error.ts'
import { type CallProxy, startCallProxy } from './call-proxy.ts'
import { apiCluster, type TestCluster } from './cluster.ts'
import { kubeconfigTo } from './proxied-kubeconfig.ts'

const CONFIG_MAP: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }

describe('the call proxy', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let proxy: CallProxy
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    proxy = await startCallProxy(cluster.kubeconfig)
    namespace = await cluster.namespace('e2e-proxy')
  })
  after(() => proxy.close())

  it('lets calls and watches through, and after the n-th change the caller hears nothing of it', async () => {
    const { api } = await openKubernetesApi({ name: 'test', version: '1', kubeconfig: kubeconfigTo(proxy.url) })
    const objects = kubernetesObjects(api, 'test')
    const seen: (string | undefined)[] = []
    const stop = new AbortController()
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const lines = api.lines({ method: 'GET', path, query: { watch: true }, signal: stop.signal })
    const watching = (async () => {
      for await (const line of lines as AsyncIterable<{ object: V1ConfigMap }>) {
        seen.push(line.object.metadata?.name)
        if (seen.includes('second')) stop.abort()
      }
    })()
    let deaths = 0
    proxy.stopAfter(2, () => deaths++)
    await objects.create(CONFIG_MAP, { metadata: { namespace, name: 'first' } })
    await assert.rejects(objects.create(CONFIG_MAP, { metadata: { namespace, name: 'second' } }), (error: unknown) =>
      isStoreError(error, 'Unavailable'),
    )
    await watching
    assert.equal(deaths, 1)
    assert.deepEqual(
      proxy.changes.map(({ method, status }) => [method, status]),
      [
        ['POST', 201],
        ['POST', 201],
      ],
    )
    assert.ok(await cluster.objects.get(CONFIG_MAP, { namespace, name: 'second' }))
    await api.close()
  })
})
