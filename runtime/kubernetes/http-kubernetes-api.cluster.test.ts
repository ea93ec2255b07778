import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { parse } from 'yaml'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Exchange, type FaultProxy, startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { rejectsWith } from '../store/resource-store-fixture.contract.ts'
import { clusterAccess } from './cluster-access.ts'
import { HttpKubernetesApi, type HttpKubernetesApiOptions } from './http-kubernetes-api.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import { openKubernetesApi } from './open-kubernetes-api.ts'
import { transportMetrics } from './transport-metrics.ts'

describe('HttpKubernetesApi before an API server, through a network that fails', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  let namespace: string
  let path: string
  let proxy: FaultProxy
  let api: KubernetesApi
  const opened: KubernetesApi[] = []
  const open = async (options: Partial<HttpKubernetesApiOptions> = {}): Promise<KubernetesApi> => {
    const one = new HttpKubernetesApi({
      access: await clusterAccess(proxy.kubeconfig),
      userAgent: 'svc-test/1',
      ...options,
    })
    opened.push(one)
    return one
  }
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
    path = `/api/v1/namespaces/${namespace}/configmaps`
  })
  beforeEach(async () => {
    proxy = await startFaultProxy(cluster.kubeconfig)
    api = await open()
  })
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
    await proxy.stop()
  })

  const configMap = (name: string, data: Record<string, string> = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data,
  })
  const create = (name: string, through = api): Promise<{ metadata: { uid: string } }> =>
    through.call({ method: 'POST', path, body: configMap(name) })
  const name = (): string => `c-${randomUUID()}`
  const about = (method: string) => (exchange: Exchange) => exchange.method === method && exchange.path.startsWith(path)
  const made = (method: string): number => proxy.exchanges.filter(about(method)).length
  const exists = async (one: string): Promise<boolean> =>
    (await cluster.objects.get(
      { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
      { namespace, name: one },
    )) !== undefined

  const idempotent: readonly [string, (of: string, uid: string) => ApiRequest][] = [
    ['GET', of => ({ method: 'GET', path: `${path}/${of}` })],
    [
      'PATCH',
      of => ({
        method: 'PATCH',
        path: `${path}/${of}`,
        query: { fieldManager: 'test', force: true },
        contentType: 'application/apply-patch+yaml',
        body: configMap(of, { a: '1' }),
      }),
    ],
    [
      'DELETE',
      (of, uid) => ({
        method: 'DELETE',
        path: `${path}/${of}`,
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
      }),
    ],
  ]

  for (const [method, request] of idempotent)
    it(`makes ${method} again when the connection breaks or the server fails, and says the same in the end`, async () => {
      const of = name()
      const { metadata } = await create(of, cluster.api)
      proxy.inject(about(method), { before: 'reset' }, 1)
      proxy.inject(about(method), { answer: 500 }, 1)
      proxy.inject(about(method), { answer: 503 }, 1)
      await api.call(request(of, metadata.uid))
      assert.equal(made(method), 4)
    })

  it('does not repeat a change that may have been made: the caller has to look', async () => {
    const lost = name()
    proxy.inject(about('POST'), { after: 'reset' }, 1)
    await rejectsWith(create(lost), 'Unavailable')
    assert.equal(await exists(lost), true)
    const merge: ApiRequest = {
      method: 'PATCH',
      path: `${path}/${lost}`,
      contentType: 'application/merge-patch+json',
      body: { data: { a: '1' } },
    }
    proxy.inject(about('PATCH'), { answer: 500 }, 1)
    await rejectsWith(api.call(merge), 'Unavailable')
    assert.deepEqual([made('POST'), made('PATCH')], [1, 1])
  })

  it('waits as long as a 429 says and makes any call again, since nothing was done', async () => {
    const of = name()
    proxy.inject(about('POST'), { answer: 429, retryAfterSeconds: 1 }, 1)
    const before = performance.now()
    await create(of)
    assert.ok(performance.now() - before >= 990)
    assert.equal(made('POST'), 2)
  })

  it('a 429 that says longer than there is time for is told at once', async () => {
    proxy.inject(about('POST'), { answer: 429, retryAfterSeconds: 60 })
    await rejectsWith(create(name()), 'TooManyRequests')
    assert.equal(made('POST'), 1)
  })

  it('makes any call again that never left because nobody listened', async () => {
    await proxy.down()
    const of = name()
    const creating = create(of)
    await new Promise(resolve => setTimeout(resolve, 250))
    await proxy.up()
    await creating
    assert.equal(await exists(of), true)
  })

  it('is Unavailable at its deadline, whatever is silent, and others go on', async () => {
    const of = name()
    await create(of, cluster.api)
    const stuck = proxy.inject(exchange => exchange.path === `${path}/stuck`, { before: 'half-open' })
    const call = { method: 'GET', path: `${path}/stuck`, deadlineMs: 300 } as const
    const before = performance.now()
    await rejectsWith(api.call(call), 'Unavailable')
    assert.ok(performance.now() - before < 5_000)
    await api.call({ method: 'GET', path: `${path}/${of}` })
    assert.equal(stuck.count, 1)
  })

  it('a lease call waits behind nothing, though every other connection is stuck', async () => {
    proxy.inject(({ resource }) => resource === 'configmaps', { before: 'half-open' })
    const abort = new AbortController()
    const stuck = Array.from({ length: 40 }, (_, n) => [
      api.call({ method: 'GET', path: `${path}/stuck-${n}`, signal: abort.signal }),
      api.call({ method: 'POST', path, body: configMap(name()), signal: abort.signal }),
    ]).flat()
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l' }, spec: {} }
    await api.call({ method: 'POST', path: leases, body: lease, urgency: 'lease', deadlineMs: 2_000 })
    await api.call({ method: 'GET', path: `${leases}/l`, urgency: 'lease', deadlineMs: 2_000 })
    abort.abort(new Error('enough'))
    for (const one of stuck) await assert.rejects(one, /enough/)
  })

  it('an abort ends a call with its reason, before it is sent and while it waits', async () => {
    await assert.rejects(
      api.call({ method: 'GET', path, signal: AbortSignal.abort(new Error('too late')) }),
      /too late/,
    )
    assert.equal(made('GET'), 0)
    proxy.inject(about('GET'), { before: 'half-open' })
    const abort = new AbortController()
    const call = api.call({ method: 'GET', path, signal: abort.signal })
    setTimeout(() => abort.abort(new Error('not wanted any more')), 50)
    await assert.rejects(call, /not wanted any more/)
  })

  it('keeps its connections: many calls need few', async () => {
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 40 }, () => api.call({ method: 'GET', path, query: { limit: 1 } })))
    assert.equal(made('GET'), 400)
    assert.ok(proxy.connections <= 8, `${proxy.connections} connections`)
  })

  it('after close nothing works, and nothing hangs', async () => {
    proxy.inject(about('GET'), { before: 'half-open' })
    const call = api.call({ method: 'GET', path })
    await new Promise(resolve => setTimeout(resolve, 50))
    await api.close()
    await rejectsWith(call, 'Unavailable')
    await rejectsWith(api.call({ method: 'GET', path }), 'Unavailable')
  })

  it('sends no change when it may not, not even one that waited at the socket meanwhile', async () => {
    let asked = 0
    // Yes when it is asked before the call, no by the time its bytes would leave.
    const fenced = await open({ mayWrite: () => ++asked === 1 })
    await rejectsWith(create(name(), fenced), 'Unavailable')
    assert.ok(asked > 1)
    await rejectsWith(create(name(), fenced), 'Unavailable')
    assert.equal(made('POST'), 0)
    await fenced.call({ method: 'GET', path, query: { limit: 1 } })
  })

  it('counts what it did by code, method and resource', async () => {
    const registry = new Registry()
    const counted = await open({ metrics: transportMetrics(registry) })
    const of = name()
    await create(of, counted)
    await rejectsWith(create(of, counted), 'AlreadyExists')
    proxy.inject(about('GET'), { before: 'reset' }, 1)
    await counted.call({ method: 'GET', path: `${path}/${of}` })
    const text = await registry.metrics()
    for (const line of [
      'rest_client_requests_total{code="201",method="POST",resource="configmaps"} 1',
      'rest_client_requests_total{code="409",method="POST",resource="configmaps"} 1',
      'rest_client_requests_total{code="<error>",method="GET",resource="configmaps"} 1',
      'rest_client_requests_total{code="200",method="GET",resource="configmaps"} 1',
      'rest_client_retries_total{method="GET",resource="configmaps"} 1',
    ])
      assert.ok(text.includes(line), text)
    assert.ok(proxy.exchanges.every(({ userAgent }) => userAgent === 'svc-test/1'))
  })
})

describe('signing in to an API server', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let namespace: string
  let folder: string
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('kube')
    folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  /** A token of the namespace's service account. */
  const token = async (): Promise<string> => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`
    return (await cluster.api.call<{ status: { token: string } }>({ method: 'POST', path, body })).status.token
  }

  const kubeconfigWith = (user: object): string => {
    const given = parse(readFileSync(cluster.kubeconfig, 'utf8')) as { users: { name: string; user: object }[] }
    const path = join(folder, `${randomUUID()}.kubeconfig`)
    const users = given.users.map(one => ({ ...one, user }))
    writeFileSync(path, JSON.stringify({ ...given, users }))
    return path
  }

  const whoAmI = async (api: KubernetesApi): Promise<string> => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const { status } = await api.call<{ status: { userInfo: { username: string } } }>({ method: 'POST', path, body })
    return status.userInfo.username
  }

  it('reads the token again when it is refused, once', async () => {
    const file = join(folder, 'token')
    writeFileSync(file, 'no-token-at-all\n')
    const kubeconfig = kubeconfigWith({ 'token-file': file })
    const { api } = await openKubernetesApi({ name: 'svc-test', version: '1', kubeconfig })
    try {
      await rejectsWith(whoAmI(api), 'Unavailable')
      writeFileSync(file, `${await token()}\n`)
      assert.equal(await whoAmI(api), `system:serviceaccount:${namespace}:default`)
    } finally {
      await api.close()
    }
  })

  it('is Forbidden what its account may not do', async () => {
    const { api } = await openKubernetesApi({
      name: 'svc-test',
      version: '1',
      kubeconfig: kubeconfigWith({ token: await token() }),
    })
    try {
      await rejectsWith(api.call({ method: 'GET', path: '/api/v1/secrets' }), 'Forbidden')
    } finally {
      await api.close()
    }
  })

  it('connects anew when the certificate changes, and lets calls under way end', async () => {
    const good = await clusterAccess(cluster.kubeconfig)
    const { tls, headers } = await good.signIn()
    const { cert: _, key: __, ...withoutCertificate } = tls
    let now = { tls: withoutCertificate as typeof tls, headers: {} }
    const api = new HttpKubernetesApi({
      access: { ...good, signIn: async (afresh = false) => (afresh ? (now = { tls, headers }) : now) },
      userAgent: 'svc-test/1',
    })
    try {
      assert.equal(await whoAmI(api), await whoAmI(cluster.api))
    } finally {
      await api.close()
    }
  })

  it('says where it looked when there is no cluster', async () => {
    await assert.rejects(clusterAccess(join(folder, 'nothing')), /ENOENT/)
  })
})
