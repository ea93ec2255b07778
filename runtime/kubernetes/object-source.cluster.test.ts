import assert from 'node:assert/strict'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { Cache } from '../controller/cache.ts'
import { Reflector } from '../controller/reflector.ts'
import { silentLog } from '../log/log.ts'
import type { ObjectType } from './kubernetes-object.ts'
import { type Observed, objectSource } from './object-source.ts'

const configMaps: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }

describe('objectSource on an API server', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
  })

  it('feeds a cache: what is listed and what is watched look alike, trimmed, and only what the selector matches', async () => {
    const { objects, api } = cluster
    const labels = { watched: 'yes' }
    const create = (name: string, rest: object = {}): Promise<V1ConfigMap> =>
      objects.create(configMaps, { metadata: { name, namespace, ...rest }, data: { kept: 'x', dropped: 'y' } })
    const listed = await create('listed', { labels })
    await create('ignored')
    const cache = new Cache<Observed<V1ConfigMap>>({ log: silentLog })
    const trim = (object: Observed<V1ConfigMap>): Observed<V1ConfigMap> => ({ ...object, data: { kept: 'x' } })
    const source = objectSource(api, configMaps, trim)
    const reflector = new Reflector({ ...source, selector: { namespace, labels }, sink: cache, log: silentLog })
    reflector.start()
    try {
      await cache.waitForSync()
      await create('watched', { labels })
      await until(() => cache.size === 2)
      for (const object of cache.list({ namespace, labels })) {
        const made = object.metadata.name === 'listed' ? listed.metadata : object.metadata
        assert.deepEqual(object, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: {
            name: object.metadata.name,
            namespace,
            labels,
            annotations: {},
            finalizers: [],
            ownerReferences: [],
            generation: 0,
            uid: made?.uid,
            resourceVersion: made?.resourceVersion,
            creationTimestamp: made?.creationTimestamp,
          },
          data: { kept: 'x' },
        })
      }
      await objects.delete(configMaps, { namespace, name: 'listed' }, { uid: listed.metadata?.uid ?? '' })
      await until(() => cache.get({ namespace, name: 'listed' }) === undefined)
      assert.equal(cache.size, 1)
    } finally {
      await reflector.stop()
    }
  })
})

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise(resolve => setTimeout(resolve, 10))
}
