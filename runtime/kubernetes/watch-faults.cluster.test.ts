/** A cache that follows an API server through a proxy that harms its watches and lists: it comes to the same, always. */
import assert from 'node:assert/strict'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { Registry } from 'prom-client'
import { sized } from '../../testkit/full.ts'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Exchange, type Fault, type FaultProxy, startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { Cache } from '../controller/cache.ts'
import { controlMetrics } from '../controller/metrics.ts'
import { Reflector } from '../controller/reflector.ts'
import { silentLog } from '../log/log.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { ObjectType } from './kubernetes-object.ts'
import { type Observed, objectSource } from './object-source.ts'
import { openKubernetesApi } from './open-kubernetes-api.ts'

const configMaps: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }

const watches = ({ verb }: Exchange): boolean => verb === 'watch'
/** As a stream, or by pages. */
const lists = ({ verb, query }: Exchange): boolean => verb === 'list' || query.has('sendInitialEvents')
/** From a version on. */
const follows = ({ verb, query }: Exchange): boolean => verb === 'watch' && !query.has('sendInitialEvents')
const both = ({ verb }: Exchange): boolean => verb === 'watch' || verb === 'list'

const IDLE_MS = 1_500

/** What is done to a stream or a call, how often. */
const FAULTS: readonly [string, (exchange: Exchange) => boolean, Fault, number][] = [
  ['nothing', () => false, { answer: 500 }, 0],
  ['watches that are reset', watches, { watch: { kind: 'reset', after: 2 } }, 4],
  ['watches that are reset before their first event', watches, { watch: { kind: 'reset', after: 0 } }, 3],
  ['watches cut within a line', watches, { watch: { kind: 'cut', afterBytes: 1_500 } }, 4],
  ['watches that end within a line', watches, { watch: { kind: 'truncated', after: 2 } }, 4],
  ['watches with a line that is no JSON', watches, { watch: { kind: 'garbage', after: 2 } }, 4],
  ['watches that end early', watches, { watch: { kind: 'closed', after: 2 } }, 4],
  ['watches that fall silent', watches, { watch: { kind: 'half-open', after: 2 } }, 2],
  ['watches that say 410', watches, { watch: { kind: 'gone', after: 2 } }, 4],
  ['watches that tell everything twice', watches, { watch: { kind: 'duplicated' } }, 1],
  ['watches that tell late', watches, { watch: { kind: 'delayed', ms: 200 } }, 1],
  ['watches that tell only what came last', watches, { watch: { kind: 'merged', ms: 100 } }, 1],
  ['watches refused with 410', watches, { answer: 410, reason: 'Expired' }, 3],
  ['watches refused with 500', watches, { answer: 500 }, 3],
  ['watches refused with 429 and a time', watches, { answer: 429, retryAfterSeconds: 1 }, 2],
  ['watches refused with 401', watches, { answer: 401 }, 3],
  ['watches refused with 403', watches, { answer: 403 }, 3],
  ['watches that never begin', watches, { before: 'half-open' }, 2],
  ['lists and watches that are reset', both, { before: 'reset' }, 6],
  ['lists that fail, after a 410', lists, { answer: 500 }, 8],
]

describe('a reflector of an API server, through a network that fails', function () {
  this.timeout(120_000)
  let cluster: TestCluster
  let namespace: string
  let proxy: FaultProxy
  let api: KubernetesApi
  beforeEach(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
    proxy = await startFaultProxy(cluster.kubeconfig)
    ;({ api } = await openKubernetesApi({ name: 'svc-test', version: '1', kubeconfig: proxy.kubeconfig }))
  })
  afterEach(async () => {
    await api.close()
    await proxy.stop()
  })

  const follow = async ({ idleTimeoutMs = IDLE_MS } = {}) => {
    const registry = new Registry()
    const cache = new Cache<Observed<V1ConfigMap>>({ log: silentLog })
    const reflector = new Reflector({
      ...objectSource(api, configMaps),
      selector: { namespace },
      sink: cache,
      log: silentLog,
      backoff: { baseMs: 20, capMs: 300 },
      idleTimeoutMs,
      listDeadlineMs: IDLE_MS,
      metrics: controlMetrics(registry),
    })
    reflector.start()
    await cache.waitForSync()
    return { cache, reflector, registry }
  }

  /** Makes, changes and deletes, one after the other. */
  const change = async (count: number): Promise<void> => {
    const { objects } = cluster
    for (let n = 0; n < count; n++) {
      const key = { namespace, name: `c-${n % 7}` }
      const there = await objects.get(configMaps, key)
      if (there === undefined) await objects.create(configMaps, { metadata: key, data: { n: String(n) } })
      else if (n % 3 === 0) await objects.delete(configMaps, key, { uid: there.metadata?.uid ?? '' })
      else await objects.merge(configMaps, key, { data: { n: String(n) } })
    }
  }

  const versions = (items: readonly { metadata?: { name?: string; resourceVersion?: string } }[]): string[] =>
    items.map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort()

  const converged = async (cache: Cache<Observed<V1ConfigMap>>): Promise<void> => {
    const wanted = versions((await cluster.objects.list(configMaps, { namespace })).items)
    for (const end = Date.now() + 30_000; Date.now() < end; await new Promise(resolve => setTimeout(resolve, 20)))
      if (versions(cache.list()).join() === wanted.join()) return
    assert.deepEqual(versions(cache.list()), wanted)
  }

  for (const [what, match, fault, times] of FAULTS)
    it(`comes to what is there in spite of ${what}`, async () => {
      const { cache, reflector, registry } = await follow()
      try {
        // A list comes only when a watch has said that it must.
        if (match === lists) proxy.inject(watches, { watch: { kind: 'gone', after: 1 } }, 2)
        const injection = proxy.inject(match, fault, times)
        // The watch of the start was there before.
        await reopened(reflector)
        await change(sized(40, 200))
        await converged(cache)
        for (let round = 0; round < 50 && injection.count < times; round++) {
          await change(14)
          await converged(cache)
        }
        assert.equal(injection.count, times)
        await converged(cache)
        const health = reflector.health()
        assert.ok(['watching', 'listing', 'backoff'].includes(health.state), health.state)
        const missed = /^reflector_missed_events_total\{.*\} (\d+)$/m.exec(await registry.metrics())?.[1]
        // Only what was never told can be missed: where no list was made but the first, nothing.
        if (health.lists === 1) assert.equal(missed, '0')
        if (times === 0) assert.equal(health.lists, 1)
      } finally {
        await reflector.stop()
      }
    })

  /** Breaks the present watch and waits for its successor. */
  const reopened = async (reflector: Reflector<Observed<V1ConfigMap>>): Promise<void> => {
    const before = proxy.exchanges.length
    await proxy.down()
    await proxy.up()
    while (proxy.exchanges.slice(before).every(({ verb }) => verb !== 'watch'))
      await new Promise(resolve => setTimeout(resolve, 10))
    assert.notEqual(reflector.health().state, 'stopped')
  }

  const counted = async (registry: Registry, metric: string): Promise<number> =>
    Number(new RegExp(`^reflector_${metric}\\{.*\\} (\\d+)$`, 'm').exec(await registry.metrics())?.[1])
  /** The version is said to be gone: lists once more. */
  const listedAgain = async (reflector: Reflector<Observed<V1ConfigMap>>): Promise<void> => {
    const { lists } = reflector.health()
    proxy.inject(follows, { answer: 410, reason: 'Expired' }, 1)
    await reopened(reflector)
    await until(() => reflector.health().lists > lists)
  }

  it('counts what no watch had told when it lists again, and nothing where all was told', async () => {
    const { cache, reflector, registry } = await follow()
    try {
      await change(7)
      await converged(cache)
      await listedAgain(reflector)
      assert.equal(await counted(registry, 'missed_events_total'), 0)
      proxy.inject(follows, { watch: { kind: 'lossy', after: 0 } }, 1)
      await reopened(reflector)
      const { objects } = cluster
      const [lost, told] = [
        { namespace, name: 'c-1' },
        { namespace, name: 'c-2' },
      ]
      await objects.merge(configMaps, lost, { data: { n: 'lost' } })
      await objects.merge(configMaps, told, { data: { n: 'told' } })
      await until(() => cache.get(told)?.data?.['n'] === 'told')
      assert.notEqual(cache.get(lost)?.data?.['n'], 'lost')
      await listedAgain(reflector)
      assert.equal(await counted(registry, 'missed_events_total'), 1)
      await converged(cache)
    } finally {
      await reflector.stop()
    }
  })

  it('asks again no sooner than a busy API server says, and goes on then', async () => {
    // A wait is silence, too.
    const { cache, reflector } = await follow({ idleTimeoutMs: 60_000 })
    try {
      // More than its own back-off would wait.
      const seconds = 1
      const busy = proxy.inject(follows, { answer: 429, reason: 'TooManyRequests', retryAfterSeconds: seconds }, 2)
      const before = proxy.exchanges.length
      await reopened(reflector)
      await change(7)
      await converged(cache)
      assert.equal(busy.count, 2)
      const asked = proxy.exchanges.slice(before).filter(({ verb }) => verb === 'watch')
      const gapsMs = asked.slice(1).map(({ at }, index) => at - asked[index]!.at)
      // A timer may be a millisecond early by the clock of the day.
      assert.ok(gapsMs.length >= 2 && gapsMs.every(ms => ms >= seconds * 1_000 - 5), String(gapsMs))
      assert.equal(reflector.health().lists, 1)
    } finally {
      await reflector.stop()
    }
  })

  it('outlives an API server that is away, and learns what happened meanwhile', async () => {
    const { cache, reflector } = await follow()
    try {
      await proxy.down()
      await change(20)
      await new Promise(resolve => setTimeout(resolve, 2_000))
      assert.notEqual(reflector.health().state, 'stopped')
      assert.ok(reflector.health().failingMs > 0)
      await proxy.up()
      await converged(cache)
      await change(10)
      await converged(cache)
      assert.equal(reflector.health().failingMs, 0)
      assert.equal(reflector.health().lists, 1)
    } finally {
      await reflector.stop()
    }
  })

  it('leaves nothing behind when it is stopped: its watch ends', async () => {
    const { reflector } = await follow()
    const isFollowing = ({ verb, query }: Exchange): boolean => verb === 'watch' && query.has('resourceVersion')
    await until(() => proxy.exchanges.some(isFollowing))
    const before = proxy.openConnections
    await reflector.stop()
    // Those that other calls came by may be kept for the next ones.
    await until(() => proxy.openConnections < before)
    await api.close()
    await until(() => proxy.openConnections === 0)
  })
})

const until = async (holds: () => boolean): Promise<void> => {
  for (const end = Date.now() + 10_000; !holds(); await new Promise(resolve => setTimeout(resolve, 10)))
    assert.ok(Date.now() < end, `not within 10 s: ${String(holds)}`)
}
