/** Which changes restart a server, in which order that happens, and what is told of it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { statefulSets, storageClasses } from '../../operator/host/kubernetes/object-types.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { absentWebhook } from '../../testkit/kubernetes/absent-webhook.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { watchObjects } from '../../testkit/kubernetes/watch-objects.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

const MIB = 2 ** 20

/** Every version of the objects of a kind in a namespace, as they came. Versions of all kinds are counted together. */
class Versions<O extends KubernetesObject> {
  readonly seen: O[] = []
  readonly #stop = new AbortController()
  readonly #running: Promise<void>

  constructor(scene: OperatorScene, type: ObjectType<O>, { key }: FakedEnvironment) {
    this.#running = watchObjects(scene.faked.cluster.api, type, this.#stop.signal, (_, object) => {
      if (object?.metadata?.namespace === key.namespace) this.seen.push(object)
    })
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}

const versionOf = (object: KubernetesObject | undefined): number => Number(object?.metadata?.resourceVersion)

describe('a change of an environment that runs', function () {
  this.timeout(120_000)
  const storageClass = `t-restarts-${randomBytes(4).toString('hex')}`
  let scene: OperatorScene
  before(async function () {
    scene = await OperatorScene.start(this, 'restarts', { SERVICE_ENVIRONMENTS: JSON.stringify({ storageClass }) })
    await scene.faked.cluster.objects.create(storageClasses, {
      metadata: { name: storageClass },
      provisioner: 'svc.internal/faked',
      allowVolumeExpansion: true,
    })
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    if (scene === undefined) return
    await scene.stop()
    await scene.kubectl.must(['delete', 'storageclass', storageClass])
  })

  /** Until the present spec is what runs. */
  const settled = (environment: FakedEnvironment, holds: () => boolean = () => true): Promise<unknown> =>
    scene.until(
      'settled',
      () => environment.get(),
      seen => seen?.status?.phase === 'ready' && seen.status.observedGeneration === seen.metadata.generation && holds(),
    )

  it('restarts the server once for other memory, after the StatefulSet’s controller knows of it, and says so', async () => {
    const environment = await scene.made()
    const before = await scene.podUid(environment)
    const [pods, sets] = [new Versions(scene, POD, environment), new Versions(scene, statefulSets, environment)]
    const environments = new Versions(scene, environmentType, environment)
    try {
      await scene.until(
        'they are watched',
        () => [pods, sets, environments].every(({ seen }) => seen.length > 0),
        Boolean,
      )
      await scene.edit(environment, { resources: { memory: '640Mi' } })
      await settled(environment, () => new Set(pods.seen.map(({ metadata }) => metadata?.uid)).size > 1)
      const after = await scene.podUid(environment)
      assert.notEqual(after, before)
      assert.deepEqual([...new Set(pods.seen.map(({ metadata }) => metadata?.uid))], [before, after])
      const deleted = pods.seen.find(({ metadata }) => metadata?.deletionTimestamp !== undefined)
      const known = sets.seen.find(
        ({ metadata, status }) =>
          metadata?.generation === sets.seen.at(-1)?.metadata?.generation &&
          status?.observedGeneration === metadata?.generation,
      )
      assert.equal(known?.spec?.template.spec?.containers[0]?.resources?.limits?.['memory'], String(640 * MIB))
      assert.ok(versionOf(known) < versionOf(deleted), `known at ${versionOf(known)}, deleted at ${versionOf(deleted)}`)
      const phases = environments.seen.map(object => (object as { status?: { phase?: string } }).status?.phase)
      assert.deepEqual(
        phases.filter((phase, n) => phase !== phases[n - 1]),
        ['ready', 'updating', 'ready'],
      )
    } finally {
      await Promise.all([pods.stop(), sets.stop(), environments.stop()])
    }
    const told = await scene.until(
      'it is told',
      () => scene.told(environment),
      seen => seen.includes('Normal Updating'),
    )
    // That it is ready once more is counted in the event that said so first.
    assert.deepEqual(told, ['Normal Provisioning', 'Normal Ready', 'Normal RestartDue', 'Normal Updating'])
  })

  it('waits with the restart until the StatefulSet’s controller says that it knows', async () => {
    const environment = await scene.made()
    const { objects } = scene.faked.cluster
    const key = { namespace: environment.key.namespace, name: (await scene.names(environment)).name }
    const before = await scene.podUid(environment)
    // The controller cannot say what it knows: nobody may write that.
    const judged = { apiGroup: 'apps', resource: 'statefulsets/status', operation: 'UPDATE' } as const
    const end = await absentWebhook(scene.faked.cluster, key.namespace, judged)
    try {
      let count = 0
      const isRefused = (): Promise<boolean> =>
        objects.merge(statefulSets, key, { status: { collisionCount: ++count } }, 'status').then(
          () => false,
          () => true,
        )
      await scene.until('nobody may', isRefused, Boolean)
      await scene.edit(environment, { resources: { memory: '640Mi' } })
      await scene.until(
        'the template is written',
        () => objects.get(statefulSets, key),
        seen => seen?.metadata?.generation !== seen?.status?.observedGeneration,
      )
      // What does not wait deletes the pod at once.
      await sleep(2_000)
      const pod = await objects.get(POD, { ...key, name: `${key.name}-0` })
      assert.deepEqual([pod?.metadata?.uid, pod?.metadata?.deletionTimestamp], [before, undefined])
    } finally {
      await end()
    }
    await settled(environment)
    assert.notEqual(await scene.podUid(environment), before)
  })

  it('goes without a restart for more storage and for another deletion policy', async () => {
    const environment = await scene.made()
    const before = await scene.podUid(environment)
    await scene.edit(environment, { resources: { storage: '7Gi' }, deletionPolicy: 'Retain' })
    await settled(environment)
    await scene.until(
      'the claim is to grow',
      () => scene.claim(environment),
      seen => seen?.spec?.resources?.requests?.['storage'] === String(7 * 1024 * MIB),
    )
    assert.equal(await scene.podUid(environment), before)
    assert.ok(!(await scene.told(environment)).some(line => /RestartDue|Updating/.test(line)))
  })
})
