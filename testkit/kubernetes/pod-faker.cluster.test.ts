/** The pod faker on a real API server with real controllers: a StatefulSet cannot tell it from a node. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1ConfigMap, V1Namespace, V1Pod, V1StatefulSet } from '@kubernetes/client-node'
import type { ObjectKey, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { collectionPath, objectPath } from '../../runtime/kubernetes/object-path.ts'
import { CLAIM, type ClaimFaker, startClaimFaker, VOLUME } from './claim-faker.ts'
import { apiCluster, type TestCluster } from './cluster.ts'
import { NODE } from './node-faker.ts'
import { isOfEndingNamespace, POD, PodFaker } from './pod-faker.ts'

const CONFIG_MAP: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }
const NAMESPACE: ObjectType<V1Namespace> = {
  apiVersion: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  clusterScoped: true,
}
const STATEFUL_SET: ObjectType<V1StatefulSet> = { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets' }

const eventually = async (what: string, met: () => Promise<boolean>): Promise<void> => {
  const until = Date.now() + 30_000
  while (!(await met())) {
    assert.ok(Date.now() < until, `Never: ${what}`)
    await sleep(50)
  }
}

describe('the pod faker', function () {
  this.timeout(90_000)
  let cluster: TestCluster
  let set: ObjectKey
  let claimKey: ObjectKey
  let podKey: ObjectKey
  let pods: PodFaker
  let claims: ClaimFaker

  const scale = (replicas: number): Promise<unknown> => cluster.objects.merge(STATEFUL_SET, set, { spec: { replicas } })
  const pod = (): Promise<V1Pod | undefined> => cluster.objects.get(POD, podKey)
  const isReady = async (): Promise<boolean> =>
    (await cluster.objects.get(STATEFUL_SET, set))?.status?.readyReplicas === 1
  const isGone = async (): Promise<boolean> => (await pod()) === undefined

  before(async () => {
    cluster = await apiCluster()
    const namespace = await cluster.namespace('e2e-faker')
    set = { namespace, name: 'db' }
    claimKey = { namespace, name: 'data' }
    podKey = { namespace, name: 'db-0' }
    pods = await PodFaker.start({ api: cluster.api, node: `faked-${namespace}`, namespaces: [namespace] })
    claims = startClaimFaker(cluster.api, { node: pods.node, namespaces: [namespace] })
    await cluster.objects.create(CLAIM, {
      metadata: claimKey,
      spec: {
        // No class: else a provisioner of the cluster may be faster.
        storageClassName: '',
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
      },
    })
    await cluster.objects.create(STATEFUL_SET, {
      metadata: set,
      spec: {
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: {
          metadata: { labels: { app: 'db' } },
          spec: {
            terminationGracePeriodSeconds: 1,
            nodeName: pods.node, // on a cluster with a node of its own, the scheduler must not choose that
            volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claimKey.name } }],
            containers: [{ name: 'postgres', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
          },
        },
      },
    })
  })
  after(async () => {
    await scale(0)
    await eventually('gone', isGone)
    await claims.stop()
    await pods.stop()
    const node = await cluster.objects.get(NODE, { namespace: '', name: pods.node })
    await cluster.objects.delete(NODE, { namespace: '', name: pods.node }, { uid: node!.metadata!.uid! })
    assert.deepEqual([...pods.failures, ...claims.failures], [])
  })

  it('brings a StatefulSet up to ready, with its claim bound', async () => {
    await eventually('ready', isReady)
    assert.equal((await pod())?.spec?.nodeName, pods.node)
    await eventually('bound', async () => (await cluster.objects.get(CLAIM, claimKey))?.status?.phase === 'Bound')
  })

  it('binds a pod that nobody scheduled', async () => {
    const name = 'unscheduled'
    await cluster.objects.create(POD, {
      metadata: { namespace: podKey.namespace, name },
      spec: {
        // Nothing but this faker takes it to a node.
        schedulerName: pods.node,
        containers: [{ name: 'postgres', image: 'none' }],
      },
    })
    const unscheduled = (): Promise<V1Pod | undefined> =>
      cluster.objects.get(POD, { namespace: podKey.namespace, name })
    await eventually('ready', async () => (await unscheduled())?.status?.phase === 'Running')
    const { metadata, spec } = (await unscheduled())!
    assert.equal(spec?.nodeName, pods.node)
    await cluster.objects.delete(POD, { namespace: podKey.namespace, name }, { uid: metadata!.uid! })
    await eventually('gone', async () => (await unscheduled()) === undefined)
  })

  it('starts a crashed container again, and the pod says how it ended', async () => {
    pods.behave({ startMs: 300 })
    await pods.crash(podKey, { exitCode: 3 })
    assert.equal((await pod())?.status?.containerStatuses?.[0]?.ready, false)
    await eventually('ready again', async () => (await pod())?.status?.containerStatuses?.[0]?.ready === true)
    const [status] = (await pod())!.status!.containerStatuses!
    assert.deepEqual([status!.restartCount, status!.lastState?.terminated?.exitCode], [1, 3])
    pods.behave({})
  })

  it('ends a pod within its grace, and one that takes longer is killed', async () => {
    const codes: (number | undefined)[] = []
    const watching = new AbortController()
    const watched = (async () => {
      const query = { watch: true, fieldSelector: `metadata.name=${podKey.name}` }
      const path = collectionPath(POD, podKey.namespace)
      const lines = cluster.api.lines({ method: 'GET', path, query, signal: watching.signal })
      for await (const line of lines as AsyncIterable<{ object: V1Pod }>) {
        const code = line.object.status?.containerStatuses?.[0]?.state?.terminated?.exitCode
        if (code !== undefined && code !== codes.at(-1)) codes.push(code)
      }
    })()
    for (const stopMs of [10, 60_000]) {
      await eventually('ready', isReady)
      pods.behave({ stopMs })
      await scale(0)
      await eventually('gone', isGone)
      await scale(1)
    }
    pods.behave({})
    await eventually('ready', isReady)
    watching.abort()
    await watched
    assert.deepEqual(codes, [0, 137])
  })

  it('of a lost node ends nothing, and goes on when it is back', async () => {
    await pods.loseNode()
    await scale(0)
    await eventually('asked to go', async () => (await pod())?.metadata?.deletionTimestamp !== undefined)
    await sleep(500)
    assert.equal(await isGone(), false)
    await pods.bringBackNode()
    await eventually('gone', isGone)
  })

  it('knows the refusal of a binding in a namespace that ends', async () => {
    const ending = await cluster.namespace('e2e-faker-ending')
    const key = { namespace: ending, name: 'stays' }
    const held = await cluster.objects.create(CONFIG_MAP, { metadata: { ...key, finalizers: ['svc.internal/test'] } })
    const namespace = await cluster.objects.get(NAMESPACE, { namespace: '', name: ending })
    await cluster.objects.delete(NAMESPACE, { namespace: '', name: ending }, { uid: namespace!.metadata!.uid! })
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { ...podKey, namespace: ending } }
    const target = { apiVersion: 'v1', kind: 'Node', name: pods.node }
    const path = objectPath(POD, { ...podKey, namespace: ending }, 'binding')
    try {
      await assert.rejects(cluster.api.call({ method: 'POST', path, body: { ...body, target } }), isOfEndingNamespace)
    } finally {
      await cluster.objects.merge(CONFIG_MAP, key, { metadata: { uid: held.metadata!.uid, finalizers: [] } })
    }
  })

  it('lets a claim go with its volume', async () => {
    const claim = await cluster.objects.get(CLAIM, claimKey)
    const volume = { namespace: '', name: claim!.spec!.volumeName! }
    await cluster.objects.delete(CLAIM, claimKey, { uid: claim!.metadata!.uid! })
    await eventually('the volume goes', async () => (await cluster.objects.get(VOLUME, volume)) === undefined)
  })
})
