import assert from 'node:assert/strict'
import { ANNOTATIONS, LABELS } from '../../../crds/metadata.ts'
import type { KubernetesObject, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import {
  bringUpOn,
  type HostScene,
  hostScene,
  killServer,
  processIn,
  queryService,
  SLOWEST_MS,
  untilHolds,
} from '../../../testkit/kubernetes/kubernetes-host.ts'
import { TEST_CREDENTIALS, TEST_SPEC, untilState } from '../../../testkit/local-host.ts'
import type { InstanceRef } from '../host.ts'
import { instanceNames } from './instance-names.ts'
import type { KubernetesHost } from './kubernetes-host.ts'
import { claims, pods, secrets, services, statefulSets, volumes } from './object-types.ts'

const refusedOnly = (error: unknown): undefined => {
  if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error
}

describe('an instance that somebody lays hands on', function () {
  this.timeout(2 * SLOWEST_MS)
  let scene: HostScene
  let host: KubernetesHost
  before(async () => {
    scene = await hostScene('edits')
    host = await scene.open()
  })
  after(async () => {
    await host.stopAll()
    await scene.close()
  })

  const key = (name: string) => ({ namespace: scene.namespace, name })
  const query = async (ref: InstanceRef, sql: string) =>
    queryService(scene, host, (await host.observe(ref)).endpoint!.host, TEST_CREDENTIALS.app, sql)
  const arrange = async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    await query(ref, 'create table kept as select 42 as answer')
    const before = processIn(await scene.podOf(ref))
    return { ref, names: instanceNames(ref, scene.settings.managedBy), before }
  }
  const isSame = async (ref: InstanceRef, before: string | undefined) =>
    assert.equal(processIn(await scene.podOf(ref)), before, 'Postgres was restarted')
  const isWhole = async (ref: InstanceRef) => {
    await untilState(host, ref, ['running'], SLOWEST_MS)
    // Endpoints follow what was laid hands on: after one connection was made the next may still be refused for a moment.
    let rows: unknown
    await untilHolds(async () => {
      if ((await host.signIn(ref, TEST_CREDENTIALS)).result !== 'ok') return false
      rows = await query(ref, 'select answer from kept').catch(refusedOnly)
      return rows !== undefined
    })
    assert.deepEqual(rows, [{ answer: 42 }])
  }

  it('is scaled to none, and runs again; is scaled to three, and stays one', async () => {
    const { ref, names } = await arrange()
    const uid = (await scene.podOf(ref))!.metadata!.uid
    await scene.kubectl(['scale', '-n', scene.namespace, `statefulset/${names.name}`, '--replicas=0'])
    await untilHolds(async () => {
      const pod = await scene.podOf(ref)
      return pod !== undefined && pod.metadata?.uid !== uid
    })
    await isWhole(ref)
    const before = processIn(await scene.podOf(ref))
    await scene.kubectl(['scale', '-n', scene.namespace, `statefulset/${names.name}`, '--replicas=3'])
    await untilHolds(async () => (await scene.cluster.objects.get(statefulSets, key(names.name)))?.spec?.replicas === 1)
    await untilHolds(async () => (await scene.cluster.objects.get(pods, key(`${names.name}-1`))) === undefined)
    await isSame(ref, before)
    await isWhole(ref)
  })

  it('has its StatefulSet edited: what was edited is put back and nothing restarted', async () => {
    const { ref, names, before } = await arrange()
    const patch = [
      { op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'svc-postgres:other' },
      { op: 'remove', path: '/spec/template/spec/containers/0/securityContext' },
      { op: 'add', path: '/metadata/labels/app.kubernetes.io~1name', value: 'other' },
    ]
    const args = [
      'patch',
      '-n',
      scene.namespace,
      `statefulset/${names.name}`,
      '--type=json',
      '-p',
      JSON.stringify(patch),
    ]
    await scene.kubectl(args)
    await untilHolds(async () => {
      const { metadata, spec } = (await scene.cluster.objects.get(statefulSets, key(names.name)))!
      const [container] = spec!.template.spec!.containers
      return (
        container?.image === scene.settings.image &&
        container.securityContext?.readOnlyRootFilesystem === true &&
        metadata?.labels?.[LABELS.app] === 'svc-postgres'
      )
    })
    await isSame(ref, before)
  })

  it('loses its StatefulSet: it is told, and a start brings it back on its data', async () => {
    const { ref, names } = await arrange()
    await scene.kubectl(['delete', '-n', scene.namespace, `statefulset/${names.name}`])
    await untilState(host, ref, ['stopped', 'stopping'], SLOWEST_MS)
    assert.equal((await host.observe(ref)).initialized, true)
    await host.start(ref, TEST_SPEC)
    await isWhole(ref)
  })

  it('loses its Service, and has another', async () => {
    const { ref, names, before } = await arrange()
    const { uid } = (await scene.cluster.objects.get(services, key(names.name)))!.metadata!
    await scene.kubectl(['delete', '-n', scene.namespace, `service/${names.name}`])
    await untilHolds(async () => {
      const service = await scene.cluster.objects.get(services, key(names.name))
      return service !== undefined && service.metadata?.uid !== uid
    })
    await isWhole(ref)
    await isSame(ref, before)
  })

  it('loses the Secret with its files: a start makes it again, and a new pod finds it', async () => {
    const { ref, names, before } = await arrange()
    await scene.kubectl(['delete', '-n', scene.namespace, `secret/${names.files}`])
    await isWhole(ref)
    await host.start(ref, TEST_SPEC)
    assert.notEqual(await scene.cluster.objects.get(secrets, key(names.files)), undefined)
    await isSame(ref, before)
    await scene.kubectl(['delete', '-n', scene.namespace, `pod/${names.pod}`])
    await isWhole(ref)
  })

  for (const label of [LABELS.uid, LABELS.managedBy, LABELS.environment])
    for (const what of ['pod', 'service', 'statefulset', 'persistentvolumeclaim'])
      it(`has the label ${label} of its ${what} changed, and it is changed back`, async () => {
        const { ref, names, before } = await shared()
        const remains = await identities(ref)
        const name = { pod: names.pod, persistentvolumeclaim: names.claim }[what] ?? names.name
        await scene.kubectl(['label', '-n', scene.namespace, `${what}/${name}`, '--overwrite', `${label}=changed`])
        const kinds: Record<string, ObjectType> = {
          pod: { ...pods, object: {} },
          service: { ...services, object: {} },
          statefulset: { ...statefulSets, object: {} },
          persistentvolumeclaim: { ...claims, object: {} },
        }
        await untilHolds(async () => {
          const object = await scene.cluster.objects.get(kinds[what]!, key(name))
          return object?.metadata?.labels?.[label] === names.labels[label]
        })
        await isWhole(ref)
        await isSame(ref, before)
        assert.deepEqual(await identities(ref), remains)
      })
  /** Uids of what an instance is made of, and of whatever else there is of its kinds: nothing was made anew, or beside. */
  const identities = async (ref: InstanceRef): Promise<string[]> => {
    const found: string[] = []
    const name = instanceNames(ref, scene.settings.managedBy).name
    for (const type of [services, statefulSets, claims, secrets])
      for (const { metadata } of (
        await scene.cluster.objects.list<KubernetesObject>(type, { namespace: scene.namespace })
      ).items)
        if (metadata?.name?.startsWith(name) === true)
          found.push(`${type.kind} ${metadata.name} ${String(metadata.uid)}`)
    return found.sort()
  }
  let one: ReturnType<typeof arrange> | undefined
  const shared = () => (one ??= arrange())

  it('loses its pod, and has another with the same rows', async () => {
    const { ref, names, before } = await arrange()
    await scene.kubectl(['delete', '-n', scene.namespace, `pod/${names.pod}`])
    await untilHolds(async () => {
      const now = processIn(await scene.podOf(ref))
      return now !== undefined && now !== before
    })
    await isWhole(ref)
  })

  it('has its claim deleted: Postgres runs on, the volume is kept, and nothing is ever made anew', async () => {
    const { ref, names, before } = await arrange()
    const { spec } = (await scene.cluster.objects.get(claims, key(names.claim)))!
    const volume = { namespace: '', name: spec!.volumeName! }
    await scene.kubectl(['delete', '-n', scene.namespace, `pvc/${names.claim}`, '--wait=false'])
    await untilHolds(async () => (await host.observe(ref)).storageProblem?.reason === 'ClaimDeleted')
    await isSame(ref, before)
    const reclaim = async () => (await scene.cluster.objects.get(volumes, volume))?.spec?.persistentVolumeReclaimPolicy
    await untilHolds(async () => (await reclaim()) === 'Retain')

    await host.stop(ref)
    await untilHolds(async () => (await scene.cluster.objects.get(claims, key(names.claim))) === undefined)
    await untilHolds(async () => !(await host.observe(ref)).initialized)
    await assert.rejects(host.start(ref, TEST_SPEC), { name: 'ConditionError', reason: 'DataMissing' })
    assert.equal(await scene.cluster.objects.get(claims, key(names.claim)), undefined)
    assert.equal(await reclaim(), 'Retain')

    // An admin puts it back, as the message says.
    await scene.kubectl(['patch', 'pv', volume.name, '--type=json', '-p', '[{"op":"remove","path":"/spec/claimRef"}]'])
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...key(names.claim), labels: names.labels, annotations: names.annotations },
      spec: { accessModes: ['ReadWriteOnce'], resources: spec!.resources, volumeName: volume.name },
    }
    await scene.cluster.objects.create<KubernetesObject>(claims, claim)
    // Nor does an admin go on before they see that: a pod that is placed before may be looked at again after minutes only.
    const phase = async () =>
      ((await scene.cluster.objects.get(claims, key(names.claim))) as { status?: { phase?: string } } | undefined)
        ?.status?.phase
    await untilHolds(async () => (await phase()) === 'Bound')
    await host.start(ref, TEST_SPEC)
    await isWhole(ref)
    await scene.kubectl(['patch', 'pv', volume.name, '-p', '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'])
  })

  it('is told to begin its data until it has answered, and by nothing else than its Secret', async () => {
    const { names } = await arrange()
    await untilHolds(async () => {
      const claim = await scene.cluster.objects.get(claims, key(names.claim))
      return claim?.metadata?.annotations?.[ANNOTATIONS.initialized] === 'true'
    })
    assert.equal((await scene.cluster.objects.get(secrets, key(names.files)))!.data!['new-data'], undefined)
    // Written once: each change of it costs the cluster a revision.
    assert.equal((await scene.cluster.objects.get(statefulSets, key(names.name)))!.metadata!.generation, 1)
  })

  it('has the word that its data was served taken from its claim, and gets it back from its Secret', async () => {
    const { ref, names, before } = await arrange()
    const isTold = async () =>
      (await scene.cluster.objects.get(claims, key(names.claim)))?.metadata?.annotations?.[ANNOTATIONS.initialized] ===
      'true'
    const takeAway = () =>
      scene.kubectl(['annotate', '-n', scene.namespace, `pvc/${names.claim}`, `${ANNOTATIONS.initialized}-`])
    await takeAway()
    await untilHolds(isTold)
    await isSame(ref, before)

    // By an operator that has never seen it with that word.
    await host.stop(ref)
    await untilState(host, ref, ['stopped'], SLOWEST_MS)
    await host.stopAll()
    await takeAway()
    host = await scene.open()
    await untilHolds(isTold)
    await host.start(ref, TEST_SPEC)
    await isWhole(ref)
  })

  it('loses its claim and its Secret, and does not begin anew', async () => {
    const { ref, names } = await arrange()
    await host.stop(ref)
    await untilState(host, ref, ['stopped'], SLOWEST_MS)
    for (const what of [`pvc/${names.claim}`, `secret/${names.files}`])
      await scene.kubectl(['delete', '-n', scene.namespace, what])
    await untilHolds(async () => (await host.observe(ref)).storageProblem?.reason === 'DataMissing')
    await assert.rejects(host.start(ref, TEST_SPEC), { name: 'ConditionError', reason: 'DataMissing' })
    assert.equal(await scene.cluster.objects.get(claims, key(names.claim)), undefined)
  })

  it('loses its claim before it ever answered, and has another', async () => {
    const ref = await scene.place()
    const names = instanceNames(ref, scene.settings.managedBy)
    await host.start(ref, { ...TEST_SPEC, image: 'svc-postgres:absent' })
    await host.stop(ref)
    await untilState(host, ref, ['stopped'], SLOWEST_MS)
    const { uid } = (await scene.cluster.objects.get(claims, key(names.claim)))!.metadata!
    await scene.kubectl(['delete', '-n', scene.namespace, `pvc/${names.claim}`])
    await untilHolds(async () => {
      const claim = await scene.cluster.objects.get(claims, key(names.claim))
      return claim !== undefined && claim.metadata?.uid !== uid
    })
    await bringUpOn(host, ref)
  })

  it('finds its volume empty, and says so instead of beginning anew', async () => {
    const { ref, names } = await arrange()
    await scene.kubectl(['exec', '-n', scene.namespace, names.pod, '--', 'sh', '-c', 'rm -rf "$PGDATA"'])
    await killServer(scene, ref)
    await untilHolds(async () => (await host.observe(ref)).failure?.reason === 'DataMissing')
    const claim = await scene.cluster.objects.get(claims, key(names.claim))
    assert.equal(claim?.metadata?.annotations?.[ANNOTATIONS.initialized], 'true')
    assert.equal(claim.metadata.deletionTimestamp, undefined)
  })
})
