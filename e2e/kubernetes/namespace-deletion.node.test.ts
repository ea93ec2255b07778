/** `kubectl delete namespace`: refused, at every moment, while something in it is protected; otherwise it ends, operator or not. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { LABELS } from '../../crds/metadata.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { namespaces } from '../../testkit/kubernetes/cluster.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { Tenant } from '../tenant.ts'
import { RELEASE_NAMESPACE } from './installation.ts'
import { dropVolumes, volumesOf } from './left-behind.ts'
import { installedRelease, type Release } from './release.ts'

describe('the namespace of a project', function () {
  this.timeout(300_000)
  let release: Release
  before(async () => {
    release = await installedRelease()
  })

  const podsOf = async (namespace: string): Promise<(readonly (string | undefined)[])[]> =>
    (await release.cluster.objects.list(POD, { namespace })).items.map(({ metadata, status }) => [
      metadata?.uid,
      metadata?.deletionTimestamp?.toString(),
      status?.phase,
    ])
  const claimsOf = (namespace: string): Promise<string> =>
    release.kubectl.must([
      ...['--namespace', namespace, 'get', 'persistentvolumeclaims'],
      ...['-o', 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.deletionTimestamp} {.status.phase}{"\\n"}{end}'],
    ])
  /** Whether a deletion would go through now; nothing is deleted. */
  const wouldGo = async (namespace: string): Promise<boolean> => {
    try {
      await release.cluster.api.call({
        method: 'DELETE',
        path: `/api/v1/namespaces/${namespace}`,
        query: { dryRun: 'All' },
      })
      return true
    } catch (error) {
      if (isStoreError(error, 'Forbidden')) return false
      throw error
    }
  }

  it('with a protected environment is not deleted, nor while the operator is restarted, and nothing in it is touched', async () => {
    const tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('kept', { deletion_protection: true, deletion_policy: 'delete' })
    await tenant.createEnvironment('other', { deletion_policy: 'delete' })
    const { namespace } = tenant.key('kept')
    const [podsBefore, claimsBefore] = [await podsOf(namespace), await claimsOf(namespace)]
    assert.equal(podsBefore.length, 2)
    const { code, stderr } = await release.kubectl.run(['delete', 'namespace', namespace, '--wait=false'])
    assert.notEqual(code, 0, 'The namespace of a protected environment may be deleted')
    assert.match(stderr, /holds protected environments or retained data/)

    const asked = { open: 0, shut: 0 }
    const watching = new AbortController()
    const watch = (async () => {
      while (!watching.signal.aborted) {
        if (await wouldGo(namespace)) asked.open++
        else asked.shut++
        await sleep(20)
      }
    })()
    const operator = ['--namespace', RELEASE_NAMESPACE, 'rollout']
    await release.kubectl.must([...operator, 'restart', 'deployment/svc-operator'])
    await release.kubectl.must([...operator, 'status', 'deployment/svc-operator', '--timeout=120s'])
    // Another environment of the namespace changes and goes: the protection is not its own.
    await tenant.run('suspend', 'other')
    await tenant.run('delete', 'other')
    watching.abort()
    await watch
    console.log(`      refused ${asked.shut} times`)
    assert.equal(asked.open, 0, `A deletion would have gone through ${asked.open} times`)
    assert.ok(asked.shut > 50)

    const kept = await release.world.store.get(environmentType, tenant.key('kept'))
    assert.deepEqual([kept?.metadata.deletionTimestamp, kept?.status?.phase], [undefined, 'ready'])
    const uids = podsBefore.map(([uid]) => uid)
    for (const [uid, deleted, phase] of await podsOf(namespace)) {
      assert.ok(uids.includes(uid))
      assert.deepEqual([deleted, phase], [undefined, 'Running'])
    }
    for (const claim of (await claimsOf(namespace)).trim().split('\n')) {
      assert.ok(claimsBefore.includes(claim))
      assert.match(claim, /^\S+ {2}Bound$/)
    }

    // Unprotected, the way is open; and the way back in time closes it again.
    const label = async (): Promise<boolean> =>
      LABELS.protected in
      ((await release.cluster.objects.get(namespaces, { namespace: '', name: namespace }))?.metadata?.labels ?? {})
    for (const protect of [false, true, false]) {
      await release.world.api.expect(200, 'PATCH', tenant.path('kept'), { body: { deletion_protection: protect } })
      for (const end = Date.now() + 10_000; (await label()) !== protect; ) {
        assert.ok(Date.now() < end, `The label does not follow the protection ${protect}`)
        await sleep(50)
      }
      assert.equal(await wouldGo(namespace), !protect)
    }
    await tenant.run('delete', 'kept')
  })

  it('with environments that nothing protects ends, with its volumes', async () => {
    const tenant = await Tenant.create(release.world)
    await Promise.all(['one', 'two'].map(id => tenant.createEnvironment(id, { deletion_policy: 'delete' })))
    await tenant.run('suspend', 'two')
    const { namespace } = tenant.key('one')
    await release.kubectl.must(['delete', 'namespace', namespace, '--timeout=120s'])
    for (const id of ['one', 'two']) assert.equal((await tenant.inPhase(id, 'deleted')).phase, 'deleted')
    const end = Date.now() + 30_000
    while ((await volumesOf(release.cluster.objects, namespace)).length > 0) {
      assert.ok(Date.now() < end, 'Its volumes are still there')
      await sleep(250)
    }
  })

  it('that goes while no operator is there ends when one is back, and volumes that are to stay do', async () => {
    const tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('one', { deletion_policy: 'retain' })
    const { namespace } = tenant.key('one')
    const scale = async (replicas: number): Promise<void> => {
      const deployment = ['--namespace', RELEASE_NAMESPACE, 'deployment/svc-operator']
      await release.kubectl.must(['scale', ...deployment, `--replicas=${replicas}`])
      await release.kubectl.must(['rollout', 'status', ...deployment, '--timeout=120s'])
    }
    await scale(0)
    try {
      await release.kubectl.must(['delete', 'namespace', namespace, '--wait=false'])
    } finally {
      await scale(1)
    }
    await release.kubectl.must(['wait', '--for=delete', `namespace/${namespace}`, '--timeout=120s'])
    await tenant.inPhase('one', 'deleted')
    const volumes = await volumesOf(release.cluster.objects, namespace)
    assert.deepEqual(
      volumes.map(({ spec, status }) => [spec?.persistentVolumeReclaimPolicy, status?.phase]),
      [['Retain', 'Released']],
    )
    await dropVolumes(release.cluster.objects, namespace)
  })
})
