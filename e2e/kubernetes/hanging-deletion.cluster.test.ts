/** Deletions that cannot end: what is in their way stands in their conditions and in one event, and they go on once it is gone. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConditionType, conditionOf } from '../../crds/conditions.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { CLAIM } from '../../testkit/kubernetes/claim-faker.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const EVENT: ObjectType<KubernetesObject & { readonly reason?: string; readonly note?: string }> = {
  ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events' },
}
const STATEFUL_SET: ObjectType = { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets' }
const HELD = { metadata: { finalizers: ['example.com/keep'] } }

describe('a deletion that cannot end', function () {
  this.timeout(120_000)
  let faked: FakedCluster
  let operator: OperatorProcess
  let kubectl: ReturnType<typeof kubectlOn>['must']

  before(async function () {
    faked = await fakedCluster(this)
    const { kubeconfig } = faked.cluster
    kubectl = kubectlOn(kubeconfig).must
    operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity: 'deletions' })
    await operator.start()
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    await operator?.stop()
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    await faked?.assertSound()
  })

  const until = async <T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
    for (const end = Date.now() + 60_000; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      await sleep(50)
      assert.ok(Date.now() < end, `${what}: it is ${JSON.stringify(seen)}\n${operator.output.slice(-3000)}`)
    }
  }
  const made = async (): Promise<FakedEnvironment> => {
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    await until('created', () => environment.isDone(), Boolean)
    return environment
  }
  const nameOf = async (type: ObjectType, { key }: FakedEnvironment): Promise<string> =>
    (await faked.cluster.objects.list(type, { namespace: key.namespace })).items[0]?.metadata?.name ?? ''
  const patch = (type: ObjectType, { key }: FakedEnvironment, name: string, change: unknown): Promise<string> =>
    kubectl(['-n', key.namespace, 'patch', type.plural, name, '--type', 'merge', '-p', JSON.stringify(change)])
  /** That the environment says what its deletion waits for, tells it once, and means it for longer than one look. */
  const says = async (
    environment: FakedEnvironment,
    type: ConditionType,
    reason: string,
    message: RegExp,
  ): Promise<void> => {
    const look = async () => (await environment.get())?.status
    // Before its deletion began it may have said so of the one type and of Ready, and of Reconciling that it is brought up.
    const status = await until('it says why', look, seen =>
      [type, 'Ready' as const, 'Reconciling' as const].every(
        each => conditionOf(seen?.conditions, each)?.reason === reason,
      ),
    )
    assert.match(conditionOf(status?.conditions, type)?.message ?? '', message)
    assert.match(status?.operation?.message ?? '', message)
    await sleep(3_000)
    assert.equal(conditionOf((await look())?.conditions, type)?.reason, reason)
    const events = await until(
      'it is told',
      async () =>
        (await faked.cluster.objects.list(EVENT, { namespace: environment.key.namespace })).items.filter(
          event => event.reason === reason,
        ),
      found => found.length > 0,
    )
    assert.equal(events.length, 1)
    assert.match(events[0]?.note ?? '', message)
  }
  const ends = async (environment: FakedEnvironment): Promise<void> => {
    await until('deleted', () => environment.isDone(), Boolean)
  }

  it('for a node that does not answer: the pod is not taken by force', async () => {
    const environment = await made()
    const pod = await nameOf(POD, environment)
    await faked.pods.loseNode()
    try {
      await environment.ask('delete')
      await says(environment, 'DatabaseReachable', 'NodeLost', /does not answer/)
      assert.equal(await nameOf(POD, environment), pod)
    } finally {
      await faked.pods.bringBackNode()
    }
    await ends(environment)
  })

  it('for a claim that another pod uses, which is named', async () => {
    const environment = await made()
    const claim = await nameOf(CLAIM, environment)
    const { namespace } = environment.key
    const reader = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'reader', namespace },
      spec: {
        containers: [{ name: 'reader', image: 'svc-postgres:17' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
      },
    }
    await kubectl(['apply', '-f', '-'], JSON.stringify(reader))
    await environment.ask('delete')
    await says(environment, 'StorageReady', 'ClaimInUse', /reader/)
    await kubectl(['-n', namespace, 'delete', 'pod', 'reader', '--force', '--grace-period=0'])
    await ends(environment)
  })

  it('is none where the label of its StatefulSet was taken away: it goes with its pod, which is not made again', async () => {
    const environment = await made()
    const name = await nameOf(STATEFUL_SET, environment)
    await operator.stop()
    const label = { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } }
    await patch(STATEFUL_SET, environment, name, label)
    await environment.ask('delete')
    await operator.start()
    await ends(environment)
    assert.equal(await nameOf(POD, environment), '')
    const left = await faked.cluster.objects.list(STATEFUL_SET, { namespace: environment.key.namespace })
    assert.deepEqual(
      left.items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined),
      [],
    )
  })

  for (const [type, condition] of [
    [CLAIM, 'StorageReady'],
    [STATEFUL_SET, 'DatabaseReachable'],
  ] as const)
    it(`for somebody’s finalizer on a ${type.kind}`, async () => {
      const environment = await made()
      const name = await nameOf(type, environment)
      await patch(type, environment, name, HELD)
      await environment.ask('delete')
      await says(environment, condition, 'FinalizerHeld', /example\.com\/keep/)
      await patch(type, environment, name, { metadata: { finalizers: null } })
      await ends(environment)
    })
})
