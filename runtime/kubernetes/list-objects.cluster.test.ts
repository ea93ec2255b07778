/** What is listed comes as a stream where the API server has that, else page by page. Which of both a server does is found out first. */
import assert from 'node:assert/strict'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Exchange, type FaultProxy, startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { Cache } from '../controller/cache.ts'
import { Reflector } from '../controller/reflector.ts'
import { silentLog } from '../log/log.ts'
import { isStoreError } from '../store/store-error.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { ObjectType } from './kubernetes-object.ts'
import { listObjects } from './list-objects.ts'
import { type Observed, objectSource } from './object-source.ts'
import { openKubernetesApi } from './open-kubernetes-api.ts'
import { StreamRefusedError, streamObjects } from './stream-objects.ts'

const configMaps: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }
const COUNT = 12
const labels = { listed: 'yes' }

const isStream = ({ verb, query }: Exchange): boolean => verb === 'watch' && query.has('sendInitialEvents')

describe('a collection is listed', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  let namespace: string
  let path: string
  let proxy: FaultProxy
  let api: KubernetesApi
  /** Why the server does not stream; undefined where it does. */
  let refusal: string | undefined

  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
    path = `/api/v1/namespaces/${namespace}/configmaps`
    for (let i = 0; i < COUNT; i++)
      await cluster.objects.create(configMaps, { metadata: { name: `m${i}`, namespace, labels }, data: { i: `${i}` } })
    try {
      await streamObjects(cluster.api, path, {})
    } catch (error) {
      if (!(error instanceof StreamRefusedError)) throw error
      refusal = error.message
    }
  })
  beforeEach(async () => {
    proxy = await startFaultProxy(cluster.kubeconfig)
    ;({ api } = await openKubernetesApi({ name: 'svc-test', version: '1', kubeconfig: proxy.kubeconfig }))
  })
  afterEach(async () => {
    await api.close()
    await proxy.stop()
  })

  const names = async (): Promise<string[]> => {
    const { items } = await listObjects(
      api,
      path,
      { labelSelector: 'listed=yes' },
      object => object.metadata?.name ?? '',
    )
    return items.sort()
  }
  const expected = Array.from({ length: COUNT }, (_, i) => `m${i}`).sort()
  const asked = (): { streams: number; lists: number } => ({
    streams: proxy.exchanges.filter(isStream).length,
    lists: proxy.exchanges.filter(({ verb }) => verb === 'list').length,
  })

  it('page by page where streams are refused, and they are asked for only once', async function () {
    if (refusal === undefined) skipBecause(this, 'this API server streams lists')
    assert.deepEqual(await names(), expected)
    assert.deepEqual(await names(), expected)
    assert.deepEqual(asked(), { streams: 1, lists: 2 })
  })

  it('page by page where the server never tells that the initial state is through, without waiting for ever', async () => {
    proxy.inject(isStream, { before: 'half-open' })
    const started = streamObjects(api, path, {}, { silenceMs: 200, deadlineMs: 400 })
    await assert.rejects(started, error => error instanceof StreamRefusedError)
  })

  it('as one stream where the server has that', async function () {
    if (refusal !== undefined) skipBecause(this, refusal)
    assert.deepEqual(await names(), expected)
    assert.deepEqual(asked(), { streams: 1, lists: 0 })
  })

  it('and what breaks within the initial state is no refusal: it is streamed again, whole', async function () {
    if (refusal !== undefined) skipBecause(this, refusal)
    proxy.inject(isStream, { watch: { kind: 'reset', after: 3 } }, 1)
    await assert.rejects(names, error => isStoreError(error, 'Unavailable'))
    assert.deepEqual(await names(), expected)
    assert.deepEqual(asked(), { streams: 2, lists: 0 })
  })

  for (const [what, fault] of [
    ['a reset within the initial state', { kind: 'reset', after: 5 }],
    ['a history that is gone, within the initial state', { kind: 'gone', after: 5 }],
    ['a stream that ends within the initial state', { kind: 'closed', after: 5 }],
  ] as const)
    it(`so that a cache is filled after ${what}, and follows from there`, async function () {
      if (refusal !== undefined) skipBecause(this, refusal)
      proxy.inject(isStream, { watch: fault }, 1)
      const cache = new Cache<Observed<V1ConfigMap>>({ log: silentLog })
      const backoff = { baseMs: 20, capMs: 100 }
      const source = objectSource(api, configMaps)
      const reflector = new Reflector({
        ...source,
        selector: { namespace, labels },
        sink: cache,
        log: silentLog,
        backoff,
      })
      reflector.start()
      try {
        await cache.waitForSync(AbortSignal.timeout(20_000))
        assert.deepEqual(
          cache
            .list()
            .map(({ metadata }) => metadata.name)
            .sort(),
          expected,
        )
        const told = Promise.withResolvers<undefined>()
        cache.subscribe(({ object }) => {
          if (object.metadata.name === 'later') told.resolve(undefined)
        })
        const later = await cluster.objects.create(configMaps, { metadata: { name: 'later', namespace, labels } })
        await told.promise
        await cluster.objects.delete(configMaps, { namespace, name: 'later' }, { uid: later.metadata?.uid ?? '' })
        assert.deepEqual(asked(), { streams: 2, lists: 0 })
        assert.equal(reflector.health().lists, 1)
      } finally {
        await reflector.stop()
      }
    })
})
