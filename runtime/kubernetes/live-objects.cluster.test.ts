import assert from 'node:assert/strict'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { Cache } from '../controller/cache.ts'
import { silentLog } from '../log/log.ts'
import { StoreError } from '../store/store-error.ts'
import type { KubernetesObjects, ObjectType } from './kubernetes-object.ts'
import { LiveObjects } from './live-objects.ts'
import { type Observed, objectSource } from './object-source.ts'

const configMaps: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }

describe('live objects on an API server', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('host')
  })

  /** A cache that sees something only when it is told to look. */
  const arrange = (objects: KubernetesObjects = cluster.objects) => {
    const cache = new Cache<Observed<V1ConfigMap>>({ log: silentLog })
    let seen: string | undefined
    const { store, type } = objectSource(cluster.api, configMaps)
    const look = async (): Promise<void> => {
      const list = await store.list(type, { namespace })
      cache.replace(list.items)
      seen = list.resourceVersion
    }
    return { live: new LiveObjects({ objects, type: configMaps, cache, seenUpTo: () => seen }), cache, look }
  }
  const made = (name: string, value: string): V1ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: { value },
  })
  const key = (name: string) => ({ namespace, name })

  it('say what we wrote although the cache has not seen it', async () => {
    const { live, cache, look } = arrange()
    await look()
    await live.apply(made('own', 'first'))
    assert.equal(cache.get(key('own')), undefined)
    assert.equal(live.get(key('own'))?.data?.['value'], 'first')
    await look()
    await live.merge(key('own'), { data: { value: 'second' } })
    assert.equal(cache.get(key('own'))?.data?.['value'], 'first')
    assert.equal(live.get(key('own'))?.data?.['value'], 'second')
  })

  it('say what others wrote after us once the cache has seen it, its deletion too', async () => {
    const { live, look } = arrange()
    const own = await live.apply(made('theirs', 'ours'))
    await cluster.objects.merge(configMaps, key('theirs'), { data: { value: 'theirs' } })
    assert.equal(live.get(key('theirs'))?.data?.['value'], 'ours')
    await look()
    assert.equal(live.get(key('theirs'))?.data?.['value'], 'theirs')
    await live.merge(key('theirs'), { data: { value: 'again' } })
    await cluster.objects.delete(configMaps, key('theirs'), { uid: own.metadata.uid })
    // The cache never saw our last write, and need not: it has seen what came after.
    await look()
    assert.equal(live.get(key('theirs')), undefined)
  })

  it('say that an object goes as soon as we asked for it, and only of that object', async () => {
    const { live, look } = arrange()
    const first = await live.apply(made('going', 'first'))
    await look()
    await live.delete(key('going'), { uid: first.metadata.uid })
    assert.notEqual(live.get(key('going'))?.metadata.deletionTimestamp, undefined)
    await cluster.objects.create(configMaps, made('going', 'next'))
    await look()
    assert.equal(live.get(key('going'))?.metadata.deletionTimestamp, undefined)
    assert.equal(live.get(key('going'))?.data?.['value'], 'next')
  })

  it('ask the API server after a write whose answer was lost', async () => {
    let lose = true
    const lossy: KubernetesObjects = {
      ...cluster.objects,
      apply: async (type, object, manager) => {
        const applied = await cluster.objects.apply(type, object, manager)
        if (lose) throw new StoreError('Unavailable', 'The answer was lost')
        return applied
      },
    }
    const { live, look } = arrange(lossy)
    await look()
    await assert.rejects(live.apply(made('lost', 'written')), { reason: 'Unavailable' })
    lose = false
    assert.equal(live.get(key('lost')), undefined)
    assert.equal((await live.certain(key('lost')))?.data?.['value'], 'written')
    assert.equal(live.get(key('lost'))?.data?.['value'], 'written')
  })
})
