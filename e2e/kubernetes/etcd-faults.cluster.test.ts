/** Trouble of the etcd behind the API server: it answers nobody, its space is used up, or it is set back to what it held before. */
import assert from 'node:assert/strict'
import { cpSync, renameSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { claims, networkPolicies, pods, statefulSets } from '../../operator/host/kubernetes/object-types.ts'
import { ClusterProcess, type ClusterProcessName, untilAnswered } from '../../testkit/kubernetes/cluster-process.ts'
import { etcdUrl, useUpSpace } from '../../testkit/kubernetes/etcd.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'
import { signInBySecret } from './sign-in-by-secret.ts'

/** Less than what a leader may be without an answer. */
const FROZEN_MS = 7000
const FULL_MS = 5000

describe('an operator whose cluster has trouble with its etcd', function () {
  this.timeout(240_000)
  let scene: OperatorScene

  before(async function () {
    scene = await OperatorScene.start(this, 'etcd-in-trouble')
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const processOf = (test: Mocha.Context, name: ClusterProcessName): ClusterProcess =>
    ClusterProcess.named(name) ?? skipBecause(test, 'SERVICE_TEST_API_SERVER_PID_FILE names no processes to end')
  const uids = async ({ key: { namespace } }: FakedEnvironment): Promise<unknown> => {
    const { objects } = scene.faked.cluster
    const place = { namespace }
    const lists = [objects.list(statefulSets, place), objects.list(claims, place), objects.list(pods, place)] as const
    return (await Promise.all(lists)).map(({ items }) => items.map(({ metadata }) => metadata?.uid))
  }
  const answers = (): Promise<void> => untilAnswered(() => scene.faked.store.list(environmentType))

  it('catches up with one that answered nobody for seconds, and leads on', async function () {
    const etcd = processOf(this, 'etcd')
    const { pid } = scene.operator
    const [asked, there] = [await scene.prepared(), await scene.made()]
    await asked.ask('create')
    await etcd.freeze(FROZEN_MS)
    await answers()
    await there.ask('suspend', { suspended: true })
    await Promise.all([asked, there].map(each => scene.done(each)))
    assert.deepEqual([scene.operator.running, scene.operator.pid], [true, pid], scene.operator.output.slice(-3000))
    assert.doesNotMatch(scene.operator.output, /"level":"fatal"|lost the lease/)
  })

  it('puts back what was deleted while nothing could be written, as soon as something can be', async function () {
    const url = etcdUrl() ?? skipBecause(this, 'SERVICE_TEST_ETCD_URL does not say where etcd is')
    const environment = await scene.made()
    const before = await uids(environment)
    const { pid } = scene.operator
    const { objects } = scene.faked.cluster
    const { namespace } = environment.key
    const policies = async () =>
      (await objects.list(networkPolicies, { namespace })).items.map(found => found.metadata!)
    const [policy, ...others] = await policies()
    assert.ok(policy?.name !== undefined && policy.uid !== undefined)
    assert.deepEqual(others, [])
    const freeSpace = await useUpSpace(url)
    try {
      await assert.rejects(environment.ask('suspend', { suspended: true }), /database space exceeded/)
      // What an etcd takes in that is full: that something goes.
      await objects.delete(networkPolicies, { namespace, name: policy.name }, { uid: policy.uid })
      await sleep(FULL_MS)
      assert.deepEqual(await policies(), [])
    } finally {
      await freeSpace()
    }
    await scene.until('it is there again', policies, found => found.length === 1)
    await scene.until(
      'all is well',
      () => scene.reason(environment, 'Ready'),
      reason => reason === 'Ready',
    )
    assert.deepEqual(await uids(environment), before)
    assert.deepEqual([scene.operator.running, scene.operator.pid], [true, pid], scene.operator.output.slice(-3000))
  })

  it('takes one that was set back as it is: nothing goes that is there again, and what is asked for is done', async function () {
    const etcd = processOf(this, 'etcd')
    const apiServer = processOf(this, 'kube-apiserver')
    // Whoever sets a cluster back starts these anew: their memory of owners that are gone would end what is there again.
    const controllers = (['kube-controller-manager', 'kube-scheduler'] as const).map(name => processOf(this, name))
    const folder = etcd.wordAfter('--data-dir')
    const [kept, suspended, deleted] = [await scene.made(), await scene.made(), await scene.made()]
    const thereThen = [kept, suspended, deleted]
    const before = await Promise.all(thereThen.map(uids))
    await etcd.kill()
    try {
      cpSync(folder, `${folder}.then`, { recursive: true })
    } finally {
      etcd.start()
    }
    await answers()
    await suspended.ask('suspend', { suspended: true })
    await scene.done(suspended)
    await deleted.ask('delete')
    await scene.done(deleted)
    const later = await scene.made()

    const { pid } = scene.operator
    const everything = [...controllers, apiServer, etcd]
    try {
      await Promise.all(everything.map(each => each.kill()))
      rmSync(folder, { recursive: true })
      renameSync(`${folder}.then`, folder)
    } finally {
      etcd.start()
      apiServer.start()
      await answers()
      for (const controller of controllers) controller.start()
    }
    // A leader that was without an answer for too long ends, and is started anew, as a Deployment does it.
    await scene.until(
      'it leads',
      async () => {
        if (!scene.operator.running) await scene.operator.start()
        return scene.operator.running
      },
      Boolean,
    )
    console.log(`      ${scene.operator.pid === pid ? 'it led on' : 'it was started anew'}`)
    assert.equal(await later.get(), undefined)
    // They are asked for something that only who knows them as they are can do.
    for (const environment of thereThen) {
      await scene.edit(environment, { deletionPolicy: 'Retain' })
      const { generation } = (await environment.get())!.metadata
      const seen = await scene.until(
        'it is known',
        () => environment.get(),
        each => each?.status?.observedGeneration === generation && each.status.phase === 'ready',
      )
      assert.equal(seen?.spec.suspended ?? false, false)
    }
    assert.deepEqual(await Promise.all(thereThen.map(uids)), before)
    for (const environment of thereThen) {
      await signInBySecret(environment, (await environment.get())!.metadata.uid)
      await environment.ask('suspend', { suspended: true })
      await scene.done(environment)
      await environment.ask('resume', { suspended: false })
      await scene.done(environment)
    }
    await scene.made()
  })
})
