/** What becomes of the volumes of environments, whoever deletes what, with the operator at work or away. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1PersistentVolume } from '@kubernetes/client-node'
import { deletionRecordName } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { ANNOTATIONS, LABELS } from '../../crds/metadata.ts'
import { CLAIM, VOLUME } from '../../testkit/kubernetes/claim-faker.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

describe('the volume of an environment', function () {
  this.timeout(120_000)
  let faked: FakedCluster
  let operator: OperatorProcess
  let kubectl: ReturnType<typeof kubectlOn>['must']

  before(async function () {
    faked = await fakedCluster(this)
    const { kubeconfig } = faked.cluster
    kubectl = kubectlOn(kubeconfig).must
    operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity: 'volumes' })
    await operator.start()
  })
  afterEach(async () => {
    faked.claims.reclaim('Delete')
    if (!operator.running) await operator.start()
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    await operator?.stop()
    for (const { metadata, spec } of (await faked.cluster.objects.list(VOLUME)).items)
      if (spec?.claimRef?.namespace?.startsWith('t-e2e-') === true)
        await kubectl(['patch', 'pv', metadata?.name ?? '', '-p', reclaimPatch('Delete')])
    await faked.assertSound()
  })

  const reclaimPatch = (policy: string): string => JSON.stringify({ spec: { persistentVolumeReclaimPolicy: policy } })
  const until = async <T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
    for (const end = Date.now() + 60_000; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      await sleep(25)
      assert.ok(Date.now() < end, `${what}: it is ${JSON.stringify(seen)}\n${operator.output.slice(-3000)}`)
    }
  }
  interface Placed {
    readonly environment: FakedEnvironment
    readonly uid: string
    /** Of its volume. */
    readonly name: string
    readonly claim: string
  }
  const made = async (spec: Partial<EnvironmentSpec>): Promise<Placed> => {
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create', spec)
    await until('created', () => environment.isDone(), Boolean)
    const [claim] = (await faked.cluster.objects.list(CLAIM, { namespace: environment.key.namespace })).items
    const { uid } = (await environment.get())!.metadata
    return { environment, uid, name: claim?.spec?.volumeName ?? '', claim: claim?.metadata?.name ?? '' }
  }
  const volume = (name: string): Promise<V1PersistentVolume | undefined> =>
    faked.cluster.objects.get(VOLUME, { namespace: '', name })
  const reclaims = async (name: string): Promise<string | undefined> =>
    (await volume(name))?.spec?.persistentVolumeReclaimPolicy
  const becomes = (name: string, policy: string): Promise<string | undefined> =>
    until(
      `the policy of ${name}`,
      () => reclaims(name),
      seen => seen === policy,
    )
  const isRemoved = async ({ name }: Placed): Promise<void> => {
    await until(
      'the volume goes',
      () => volume(name),
      seen => seen === undefined,
    )
    assert.ok(faked.claims.removed.has(name), 'it went without its disk')
  }
  const record = async (uid: string) =>
    (await faked.store.get(deletionRecordType, { namespace: faked.namespace, name: deletionRecordName(uid) }))?.spec
  const patch = async ({ environment: { key } }: Placed, spec: Partial<EnvironmentSpec>): Promise<void> => {
    await kubectl(['-n', key.namespace, 'patch', 'senv', key.name, '--type=merge', '-p', JSON.stringify({ spec })])
  }
  const removeNamespace = ({ environment: { key } }: Placed, ...how: string[]): Promise<string> =>
    kubectl(['delete', 'namespace', key.namespace, ...how])

  it('is kept from the beginning, labelled with whose it is, where the data is to be retained', async () => {
    const { name, uid, environment } = await made({ kind: 'production' })
    const { metadata } = (await until(
      'told',
      () => volume(name),
      seen => seen?.spec?.persistentVolumeReclaimPolicy === 'Retain',
    ))!
    assert.equal(metadata?.labels?.[LABELS.uid], uid)
    assert.equal(metadata.annotations?.[ANNOTATIONS.deletionPolicy], 'Retain')
    assert.equal(metadata.annotations[ANNOTATIONS.resource], environment.key.name)
  })

  it('outlives a namespace that is deleted while the operator is away, and is told of once it is back', async () => {
    const placed = await made({ deletionPolicy: 'Retain' })
    await becomes(placed.name, 'Retain')
    await operator.stop()
    await removeNamespace(placed, '--wait=false')
    await until(
      'the claim goes',
      () => faked.cluster.objects.get(CLAIM, { ...placed.environment.key, name: placed.claim }),
      seen => seen === undefined,
    )
    await until(
      'the volume is let go',
      () => volume(placed.name),
      seen => seen?.status?.phase === 'Released',
    )
    await operator.start()
    const told = await until(
      'the record',
      () => record(placed.uid),
      seen => seen !== undefined,
    )
    assert.deepEqual([told?.retained, told?.retainedAt], [true, `persistentvolume/${placed.name}`])
    const { metadata } = (await volume(placed.name))!
    assert.equal(metadata?.labels?.[LABELS.retained], 'true')
    assert.equal(metadata.annotations?.[ANNOTATIONS.retainedUntil], told?.retainedUntil)
    assert.ok(!faked.claims.removed.has(placed.name))

    // As docs/operations.md has an admin take it into use again; nobody takes it from him.
    const namespace = await faked.cluster.namespace('e2e')
    await kubectl(['patch', 'pv', placed.name, '--type=json', '-p', '[{"op":"remove","path":"/spec/claimRef"}]'])
    await faked.cluster.objects.create(CLAIM, {
      metadata: { namespace, name: 'rescued' },
      spec: {
        ...{ accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: placed.name },
        resources: { requests: { storage: '1Mi' } },
      },
    })
    await until(
      'bound again',
      () => faked.cluster.objects.get(CLAIM, { namespace, name: 'rescued' }),
      seen => seen?.status?.phase === 'Bound',
    )
    assert.equal(await reclaims(placed.name), 'Retain')
  })

  it('follows the policy both ways, while the environment runs and while it is suspended', async () => {
    const placed = await made({ kind: 'preview' })
    await becomes(placed.name, 'Delete')
    await patch(placed, { deletionPolicy: 'Retain' })
    await becomes(placed.name, 'Retain')
    await placed.environment.ask('suspend', { suspended: true })
    await until('suspended', () => placed.environment.isDone(), Boolean)
    await patch(placed, { deletionPolicy: 'Delete' })
    await becomes(placed.name, 'Delete')
    await patch(placed, { deletionPolicy: 'Retain' })
    await becomes(placed.name, 'Retain')
    const { status } = (await placed.environment.get())!
    assert.equal(status?.phase, 'suspended')
  })

  it('is put right when somebody changes it or its claim by hand, running or suspended, without its StatefulSet too', async () => {
    const placed = await made({ deletionPolicy: 'Retain' })
    const { namespace } = placed.environment.key
    const hands = async (): Promise<void> => {
      await becomes(placed.name, 'Retain')
      await kubectl(['patch', 'pv', placed.name, '-p', reclaimPatch('Delete')])
      await becomes(placed.name, 'Retain')
      await kubectl(['label', 'pv', placed.name, `${LABELS.uid}-`, `${LABELS.managedBy}-`])
      await until(
        'the labels',
        () => volume(placed.name),
        seen => seen?.metadata?.labels?.[LABELS.uid] === placed.uid,
      )
      for (const policy of [`${ANNOTATIONS.deletionPolicy}=Delete`, `${ANNOTATIONS.deletionPolicy}-`]) {
        await kubectl(['-n', namespace, 'annotate', 'pvc', placed.claim, '--overwrite', policy])
        await until(
          'the claim’s word',
          () => faked.cluster.objects.get(CLAIM, { namespace, name: placed.claim }),
          seen => seen?.metadata?.annotations?.[ANNOTATIONS.deletionPolicy] === 'Retain',
        )
        await becomes(placed.name, 'Retain')
      }
    }
    await hands()
    await placed.environment.ask('suspend', { suspended: true })
    await until('suspended', () => placed.environment.isDone(), Boolean)
    await hands()
    await kubectl(['-n', namespace, 'delete', 'statefulset', '--all'])
    await hands()
  })

  for (const [policy, away] of [
    ['Delete', false],
    ['Retain', true],
  ] as const)
    it(`of a preview goes with its namespace, disk and all: the class says ${policy}, the operator is ${away ? 'away' : 'there'}`, async () => {
      faked.claims.reclaim(policy)
      const placed = await made({ kind: 'preview' })
      await becomes(placed.name, 'Delete')
      if (away) await operator.stop()
      await removeNamespace(placed, '--wait=false')
      if (away) {
        await isRemoved(placed)
        await operator.start()
      }
      const told = await until(
        'the record',
        () => record(placed.uid),
        seen => seen !== undefined,
      )
      assert.equal(told?.retained, false)
      await isRemoved(placed)
    })

  it('of a preview goes with its namespace though its claim goes long after the preview, and is seen by an operator that starts', async () => {
    const placed = await made({ kind: 'preview' })
    const { namespace } = placed.environment.key
    const patch = (change: object): Promise<string> =>
      kubectl(['-n', namespace, 'patch', 'pvc', placed.claim, '--type', 'merge', '-p', JSON.stringify(change)])
    await patch({ metadata: { finalizers: ['example.com/keep', 'kubernetes.io/pvc-protection'] } })
    await removeNamespace(placed, '--wait=false')
    await until(
      'the preview is gone',
      () => placed.environment.get(),
      seen => seen === undefined,
    )
    await patch({ metadata: { annotations: { 'example.com/touched': 'true' } } })
    await operator.stop()
    await operator.start()
    await patch({ metadata: { annotations: { 'example.com/touched': 'again' } } })
    // What would spare it does so at once.
    await sleep(1_000)
    assert.equal(await reclaims(placed.name), 'Delete')
    await patch({ metadata: { finalizers: null } })
    await isRemoved(placed)
  })

  it('of a preview stays when somebody deletes its claim, and goes once the preview is deleted', async () => {
    const placed = await made({ kind: 'preview' })
    await becomes(placed.name, 'Delete')
    const { namespace } = placed.environment.key
    await kubectl(['-n', namespace, 'delete', 'pvc', placed.claim, '--wait=false'])
    await becomes(placed.name, 'Retain')
    await placed.environment.ask('suspend', { suspended: true })
    await until(
      'the volume is let go',
      () => volume(placed.name),
      seen => seen?.status?.phase === 'Released',
    )
    assert.ok(!faked.claims.removed.has(placed.name))
    // An operator that has seen nothing of it finds it by its label.
    await operator.stop()
    await operator.start()
    await placed.environment.ask('delete')
    await isRemoved(placed)
  })

  it('is kept with its claim when the environment is deleted, and is an admin’s from then on', async () => {
    const placed = await made({ deletionPolicy: 'Retain' })
    await becomes(placed.name, 'Retain')
    const { namespace } = placed.environment.key
    await placed.environment.ask('delete')
    await until(
      'deleted',
      () => placed.environment.get(),
      seen => seen === undefined,
    )
    const { metadata, spec } = (await volume(placed.name))!
    assert.deepEqual([metadata?.labels?.[LABELS.retained], spec?.persistentVolumeReclaimPolicy], ['true', 'Retain'])
    await kubectl(['patch', 'pv', placed.name, '-p', reclaimPatch('Delete')])
    await operator.stop()
    await operator.start()
    assert.equal(await reclaims(placed.name), 'Delete')
    await kubectl(['-n', namespace, 'delete', 'pvc', placed.claim])
    await isRemoved(placed)
  })

  it('goes with an environment that was to be retained and never held anything', async () => {
    faked.pods.behave(() => ({ startMs: 3_600_000 }))
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create', { deletionPolicy: 'Retain' })
    const [claim] = await until(
      'bound',
      async () => (await faked.cluster.objects.list(CLAIM, { namespace: environment.key.namespace })).items,
      ([seen]) => (seen?.spec?.volumeName ?? '') !== '',
    )
    const name = claim?.spec?.volumeName ?? ''
    await becomes(name, 'Retain')
    await environment.ask('delete')
    await isRemoved({ environment, uid: '', name, claim: '' })
    faked.pods.behave(() => ({}))
  })

  it('is never told anything that is not its own, whatever its labels say', async () => {
    const placed = await made({ kind: 'preview' })
    const { metadata } = (await until(
      'labelled',
      () => volume(placed.name),
      seen => seen?.metadata?.labels?.[LABELS.uid] === placed.uid,
    ))!
    const foreign = `foreign-${placed.name}`
    await faked.cluster.objects.create(VOLUME, {
      metadata: { name: foreign, labels: { ...metadata?.labels }, annotations: { ...metadata?.annotations } },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/foreign' },
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'default', name: placed.claim },
      },
    })
    const before = (await volume(foreign))!.spec
    await placed.environment.ask('delete')
    await isRemoved(placed)
    assert.deepEqual((await volume(foreign))?.spec, before)
    await kubectl(['delete', 'pv', foreign, '--wait=false'])
  })
})
