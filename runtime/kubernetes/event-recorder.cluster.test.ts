/** Events on a real API server, as kubectl shows them. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Registry } from 'prom-client'
import { apiCluster, namespaces, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { silentLog } from '../log/log.ts'
import { EventRecorder, type EventSubject } from './event-recorder.ts'
import type { KubernetesObject } from './kubernetes-object.ts'

const run = promisify(execFile)

interface Event extends KubernetesObject {
  readonly reason: string
  readonly note: string
  readonly type: string
  readonly eventTime: string
  readonly regarding: EventSubject
  readonly series?: { readonly count: number }
}

const events = { apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events' }

describe('EventRecorder', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let namespace: string
  let subject: EventSubject
  before(async () => {
    cluster = await apiCluster()
    namespace = await cluster.namespace('run')
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const made = await cluster.api.call<KubernetesObject>({
      method: 'POST',
      path,
      body: { metadata: { name: 'acme.shop.main' } },
    })
    subject = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'acme.shop.main', uid: made.metadata!.uid! }
  })

  const recorder = (options: { readonly registry?: Registry; readonly now?: () => number } = {}) =>
    new EventRecorder({
      api: cluster.api,
      controller: 'svc.internal/operator',
      instance: 'svc-operator-0',
      log: silentLog,
      registry: options.registry ?? new Registry(),
      ...(options.now && { now: options.now }),
    })
  const told = async (uid: string): Promise<readonly Event[]> =>
    (await cluster.objects.list(events, { namespace })).items
      .map(item => item as Event)
      .filter(({ regarding }) => regarding.uid === uid)
  const note = (reason: string, text = `It is ${reason}`) =>
    ({ type: 'Normal', reason, action: 'Reconcile', note: text }) as const

  it('tells a story in order, which kubectl describe shows in that order', async () => {
    const one = recorder()
    const reasons = ['Provisioning', 'Ready', 'Suspending', 'Suspended', 'Resumed', 'Deleting']
    for (const reason of reasons) one.record(subject, note(reason))
    await one.stop(10_000)
    const listed = await told(subject.uid)
    assert.deepEqual(
      listed.map(({ reason }) => reason),
      reasons,
    )
    assert.ok(listed.every(({ eventTime }, n) => n === 0 || eventTime > listed[n - 1]!.eventTime))
    const { stdout } = await run('kubectl', [
      ...['--kubeconfig', cluster.kubeconfig, '-n', namespace, 'describe', 'configmap', subject.name],
    ])
    const shown = stdout.split('Events:')[1] ?? ''
    const places = reasons.map(reason => shown.indexOf(`It is ${reason}`))
    assert.ok(
      places.every((place, n) => place > (places[n - 1] ?? 0)),
      stdout,
    )
  })

  it('counts what is said again instead of saying it again', async () => {
    const uid = 'b5a1a5a8-0000-4000-8000-000000000001'
    const one = recorder()
    for (let n = 0; n < 4; n += 1) one.record({ ...subject, uid }, note('DiskFull'))
    one.record({ ...subject, uid }, note('DiskFull', 'Another disk'))
    await one.stop(10_000)
    const listed = await told(uid)
    assert.deepEqual(
      listed.map(({ note: text, series }) => [text, series?.count]),
      [
        ['It is DiskFull', 4],
        ['Another disk', undefined],
      ],
    )
  })

  it('tells anew what is said again after minutes, and what the cluster has forgotten', async () => {
    const uid = 'b5a1a5a8-0000-4000-8000-000000000002'
    let now = Date.now()
    const one = recorder({ now: () => now })
    one.record({ ...subject, uid }, note('DiskFull'))
    now += 7 * 60_000
    one.record({ ...subject, uid }, note('DiskFull'))
    await one.stop(10_000)
    const listed = await told(uid)
    assert.equal(listed.length, 2)
    const two = recorder()
    two.record({ ...subject, uid }, note('Ready'))
    await new Promise(resolve => setTimeout(resolve, 500))
    for (const { metadata } of await told(uid))
      await cluster.objects.delete(events, { namespace, name: metadata!.name! }, { uid: metadata!.uid! })
    two.record({ ...subject, uid }, note('Ready'))
    await two.stop(10_000)
    assert.deepEqual(
      (await told(uid)).map(({ reason }) => reason),
      ['Ready'],
    )
  })

  it('never throws nor waits: not for a namespace that is gone, not for a flood', async () => {
    const registry = new Registry()
    const one = recorder({ registry })
    const gone = { ...subject, namespace: 'no-such-namespace', uid: 'b5a1a5a8-0000-4000-8000-000000000003' }
    for (let n = 0; n < 100; n += 1) one.record(gone, note('Ready', `Number ${n}`))
    await one.stop(10_000)
    one.record(gone, note('Ready', 'After the stop'))
    const metrics = await registry.metrics()
    assert.match(metrics, /^kubernetes_events_total\{result="failed"\} 25$/m)
    assert.match(metrics, /^kubernetes_events_total\{result="dropped"\} 76$/m)
    assert.equal((await cluster.objects.get(namespaces, { namespace: '', name: gone.namespace })) ?? 'none', 'none')
  })
})
