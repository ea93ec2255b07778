import assert from 'node:assert/strict'
import type { V1ConfigMap, V1StatefulSet } from '@kubernetes/client-node'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { rejectsWith } from '../store/resource-store-fixture.contract.ts'
import { isStoreError } from '../store/store-error.ts'
import type { ObjectType } from './kubernetes-object.ts'
import { kubernetesObjects } from './kubernetes-objects.ts'
import { openKubernetesApi } from './open-kubernetes-api.ts'

const configMaps: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }
const statefulSets: ObjectType<V1StatefulSet> = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
}

const FOREIGN_UID = '00000000-0000-4000-8000-000000000000'

describe('kubernetesObjects on an API server', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
  })
  const configMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({
    metadata: { name, namespace, labels },
    data,
  })
  const key = (name: string) => ({ namespace, name })

  it('reads what it made, says undefined for what is not there, and refuses a taken name', async () => {
    const { objects } = cluster
    const made = await objects.create(configMaps, configMap('made', { a: '1' }))
    assert.equal(made.kind, 'ConfigMap')
    assert.deepEqual((await objects.get(configMaps, key('made')))?.data, { a: '1' })
    assert.equal(await objects.get(configMaps, key('nobody')), undefined)
    await rejectsWith(objects.create(configMaps, configMap('made')), 'AlreadyExists')
  })

  it('lists more than a page as one snapshot, by labels, each item with its kind', async () => {
    const { objects } = cluster
    const labels = { many: 'yes' }
    const names = Array.from({ length: 510 }, (_, n) => `many-${String(n).padStart(3, '0')}`)
    await Promise.all(names.map(name => objects.create(configMaps, configMap(name, {}, labels))))
    const { items, resourceVersion } = await objects.list(configMaps, { namespace, labels })
    assert.deepEqual(items.map(({ metadata }) => metadata?.name).sort(), names)
    assert.ok(items.every(({ kind, apiVersion }) => kind === 'ConfigMap' && apiVersion === 'v1'))
    assert.match(resourceVersion, /^\d+$/)
    const everywhere = await objects.list(configMaps, { labels })
    assert.equal(everywhere.items.length, 510)
  })

  it('lists everything at once when the snapshot is compacted away between two pages', async () => {
    const proxy = await startFaultProxy(cluster.kubeconfig)
    const { api } = await openKubernetesApi({ name: 'svc-test', version: '1', kubeconfig: proxy.kubeconfig })
    try {
      const expired = proxy.inject(({ query }) => query.has('continue'), { answer: 410, reason: 'Expired' })
      const labels = { many: 'yes' }
      const { items } = await kubernetesObjects(api, 'svc-test').list(configMaps, { namespace, labels })
      assert.equal(new Set(items.map(({ metadata }) => metadata?.name)).size, 510)
      assert.deepEqual([items.length, expired.count], [510, 1])
    } finally {
      await api.close()
      await proxy.stop()
    }
  })

  it('apply makes, changes and takes back its own fields, and leaves those of others', async () => {
    const { objects } = cluster
    const other = kubernetesObjects(cluster.api, 'somebody')
    await objects.apply(configMaps, configMap('applied', { ours: '1', dropped: '1' }))
    await other.merge(configMaps, key('applied'), { data: { theirs: '1', ours: 'changed' } })
    const applied = await objects.apply(configMaps, configMap('applied', { ours: '2' }))
    assert.deepEqual(applied.data, { ours: '2', theirs: '1' })
    const again = await objects.apply(configMaps, configMap('applied', { ours: '2' }))
    assert.equal(again.metadata?.resourceVersion, applied.metadata?.resourceVersion)
  })

  it('names the fields that are refused', async () => {
    const { objects } = cluster
    const bad = {
      metadata: { name: 'bad', namespace },
      spec: { selector: { matchLabels: { a: 'b' } }, serviceName: 'x', template: { metadata: { labels: { a: 'c' } } } },
    } as unknown as V1StatefulSet
    await assert.rejects(objects.apply(statefulSets, bad), (error: unknown) => {
      assert.ok(isStoreError(error, 'Invalid'))
      assert.ok(
        error.violations.some(({ field }) => field === 'spec.template.metadata.labels'),
        error.message,
      )
      return true
    })
  })

  it('merge is bound by what its metadata say', async () => {
    const { objects } = cluster
    const made = await objects.create(configMaps, configMap('merged', { a: '1' }))
    const bound = { metadata: { resourceVersion: made.metadata?.resourceVersion } }
    await objects.merge(configMaps, key('merged'), { ...bound, data: { a: '2' } })
    await rejectsWith(objects.merge(configMaps, key('merged'), { ...bound, data: { a: '3' } }), 'Conflict')
    await rejectsWith(objects.merge(configMaps, key('nobody'), { data: {} }), 'NotFound')
  })

  it('delete is bound to a uid: harmless when it is gone or its name is another’s, a Conflict when its version is stale', async () => {
    const { objects } = cluster
    const made = await objects.create(configMaps, configMap('deleted'))
    const uid = made.metadata?.uid ?? ''
    await objects.delete(configMaps, key('deleted'), { uid: FOREIGN_UID })
    assert.ok(await objects.get(configMaps, key('deleted')))
    const resourceVersion = made.metadata?.resourceVersion ?? ''
    await objects.merge(configMaps, key('deleted'), { data: { a: '1' } })
    await rejectsWith(objects.delete(configMaps, key('deleted'), { uid, resourceVersion }), 'Conflict')
    await objects.delete(configMaps, key('deleted'), { uid })
    await objects.delete(configMaps, key('deleted'), { uid })
    assert.equal(await objects.get(configMaps, key('deleted')), undefined)
  })
})
