/** Somebody with kubectl alone: no call of the API, and yet the API knows it afterwards. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { instanceName, LABELS } from '../../crds/metadata.ts'
import { sweepDeletionRecords } from '../../operator/deletion-records/sweep.ts'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import { Tenant } from '../tenant.ts'
import { openAsAccount } from './account-api.ts'
import { type ClientPod, startClientPod } from './client-pod.ts'
import { RELEASE_NAMESPACE } from './installation.ts'
import { type KubectlTenant, kubectlTenant } from './kubectl-tenant.ts'
import { nothingIsLeft, volumesOf } from './left-behind.ts'
import { installedRelease, type Release } from './release.ts'

const DAY_MS = 86_400_000

/** A schema, as far as its descriptions go. */
interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}
/** What our definitions say of themselves: `kubectl explain` looks into objects and the items of lists alike. */
const objectsIn = (schema: Schema, path: string): [path: string, fields: readonly string[]][] => {
  const inner = schema.items ?? schema
  const { properties = {} } = inner
  if (Object.keys(properties).length === 0) return []
  const below = Object.entries(properties).filter(([name]) => name !== 'metadata')
  return [[path, Object.keys(properties)], ...below.flatMap(([name, field]) => objectsIn(field, `${path}.${name}`))]
}

describe('kubectl alone', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let hand: KubectlTenant
  let namespace: string
  let client: ClientPod
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    // Nobody of ours answers calls while it is applied.
    await scaleApi(0)
    hand = await kubectlTenant(release, tenant)
    ;({ namespace } = hand)
  })

  const kubectl = (...args: string[]): Promise<string> => release.kubectl.must(args)
  const inProject = (...args: string[]): Promise<string> => hand.inProject(...args)
  const nameOf = (environmentId: string): string => hand.nameOf(environmentId)
  const scaleApi = async (replicas: number): Promise<void> => {
    const deployment = ['deployment/svc-apiserver', '--namespace', RELEASE_NAMESPACE]
    await kubectl('scale', ...deployment, `--replicas=${replicas}`)
    await kubectl('rollout', 'status', ...deployment, '--timeout=120s')
  }

  it('makes an environment ready with no API server, and says so in columns, conditions and events', async () => {
    await hand.apply(hand.environment('by-hand'))
    const resource = `environment/${nameOf('by-hand')}`
    await inProject('wait', '--for=condition=Ready', resource, '--timeout=120s')
    await hand.inPhase('by-hand', 'ready')
    const table = await kubectl('get', 'environments', '--all-namespaces')
    const [heading, ...rows] = table.trim().split('\n')
    assert.match(heading!, /NAMESPACE +NAME +PHASE +KIND +READY +EXPIRES +AGE/)
    assert.match(rows.find(row => row.includes(nameOf('by-hand')))!, /ready +staging +True/)
    assert.match(await inProject('get', 'senv', '-o', 'wide'), /by-hand.*\.svc/)
  })

  it('has its kinds by one word, and takes none from Kubernetes’ own', async () => {
    const listed = async (word: string): Promise<string[]> =>
      (await inProject('get', word, '--output', 'name')).trim().split('\n')
    assert.deepEqual(await listed('svc-all'), [`environment.svc.internal/${nameOf('by-hand')}`])
    const { organizationId, projectId } = tenant
    const instance = instanceName({ organizationId, projectId, environmentId: 'by-hand' })
    assert.deepEqual(await listed('svc'), [`service/${instance}`])
  })

  it('explains every field of every kind', async () => {
    for (const plural of ['environments', 'deletionrecords']) {
      const definition = JSON.parse(await kubectl('get', 'crd', `${plural}.svc.internal`, '-o', 'json')) as {
        readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] }
      }
      const objects = objectsIn(definition.spec.versions[0]!.schema.openAPIV3Schema, plural)
      assert.ok(objects.length >= 2)
      for (const [path, fields] of objects) {
        const told = await kubectl('explain', path)
        assert.doesNotMatch(told, /<no description>|<empty>/, path)
        for (const field of fields) assert.match(told, new RegExp(`^  ${field}\t<.*\n +\\S`, 'm'), `${path}.${field}`)
      }
    }
  })

  it('suspends and resumes by an apply, and the rows are there', async () => {
    const resource = `environment/${nameOf('by-hand')}`
    client = await startClientPod(release, { namespace, name: nameOf('by-hand') })
    await client.psql('create table kept as select 42 as answer')
    await hand.apply(hand.environment('by-hand', { suspended: true }))
    await hand.inPhase('by-hand', 'suspended')
    await inProject('wait', '--for=condition=Suspended', resource, '--timeout=10s')
    assert.equal((await inProject('get', 'pods', '-o', 'name')).trim(), 'pod/client')
    await hand.apply(hand.environment('by-hand', { suspended: false }))
    await hand.inPhase('by-hand', 'ready')
    await inProject('wait', '--for=condition=Ready', resource, '--timeout=10s')
    assert.equal((await client.psql('select answer from kept')).trim(), '42')
    await client.remove()
  })

  it('has the story told in order by describe', async () => {
    const told = await inProject('describe', `environment/${nameOf('by-hand')}`)
    const reasons = told
      .slice(told.lastIndexOf('Events:'))
      .split('\n')
      .slice(3)
      .flatMap(line => line.trim().split(/\s+/)[1] ?? [])
    const story = ['Provisioning', 'Ready', 'Suspending', 'Suspended', 'Resuming', 'Resumed']
    assert.deepEqual(reasons, story, told)
  })

  it('refuses what must not be lost: a protected environment, its namespace, our definitions', async () => {
    await hand.apply(hand.environment('guarded', { deletionProtection: true }))
    const resource = `environment/${nameOf('guarded')}`
    await inProject('wait', '--for=condition=Ready', resource, '--timeout=120s')
    const refused = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await release.kubectl.run([...args, '--wait=false'])
      assert.notEqual(code, 0, `${args.join(' ')} went through`)
      assert.match(stderr, /denied|Forbidden/i)
    }
    await refused('--namespace', namespace, 'delete', resource)
    await refused('delete', 'namespace', namespace)
    await refused('delete', 'customresourcedefinition', 'environments.svc.internal')
    const kept = await release.world.store.get(environmentType, { namespace, name: nameOf('guarded') })
    assert.equal(kept?.metadata.deletionTimestamp, undefined)
    assert.equal(kept?.status?.phase, 'ready')
    await inProject('patch', resource, '--type=merge', '-p', '{"spec":{"deletionProtection":false}}')
    await inProject('delete', resource, '--timeout=120s')
  })

  it('the record of a deletion that nobody fetched goes after 30 days, by what the operator’s account may do', async () => {
    const store = new KubernetesResourceStore(await openAsAccount(release, 'svc-operator'), 'svc-operator')
    const sweep = (days: number): Promise<number> =>
      sweepDeletionRecords({
        ...{ store, namespace: RELEASE_NAMESPACE, keepMs: 30 * DAY_MS },
        now: () => Date.now() + days * DAY_MS,
      })
    assert.equal(await sweep(29), 0)
    assert.ok((await sweep(31)) >= 1)
    assert.deepEqual((await release.world.store.list(deletionRecordType, { namespace: RELEASE_NAMESPACE })).items, [])
  })

  it('what was made without it, the API knows when it is back', async () => {
    await scaleApi(1)
    const until = Date.now() + 60_000
    for (;;) {
      const answer = await release.world.api
        .call<{ phase?: string }>('GET', tenant.path('by-hand'))
        .catch(() => undefined) // the way there leads to a pod that is just starting
      if (answer?.status === 200 && answer.body.phase === 'ready') break
      assert.ok(Date.now() < until, answer?.text)
      await sleep(200)
    }
  })

  it('delete leaves nothing behind, and events say what became of the data', async () => {
    await inProject('delete', `environment/${nameOf('by-hand')}`, '--timeout=120s')
    await nothingIsLeft(release, namespace)
    const about = `regarding.name=${nameOf('by-hand')}`
    const path = `--raw=/apis/events.k8s.io/v1/namespaces/${namespace}/events?fieldSelector=${about}`
    for (const until = Date.now() + 10_000; ; ) {
      const { items } = JSON.parse(await kubectl('get', path)) as { items: { reason: string; eventTime: string }[] }
      const reasons = items.sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1)).map(({ reason }) => reason)
      if (reasons.slice(-2).join() === 'Deleting,DataRemoved') break
      assert.ok(Date.now() < until, reasons.join(', '))
      await sleep(250)
    }
    await kubectl('delete', 'namespace', namespace, '--timeout=120s')
  })
})

describe('kubectl alone, with production', function () {
  this.timeout(300_000)
  let release: Release
  let hand: KubectlTenant
  let client: ClientPod
  let instance: string
  before(async () => {
    release = await installedRelease()
    const tenant = await Tenant.create(release.world)
    hand = await kubectlTenant(release, tenant)
    const { organizationId, projectId } = tenant
    instance = instanceName({ organizationId, projectId, environmentId: 'prod' })
  })

  const production = (spec: Readonly<Record<string, unknown>> = {}): object =>
    hand.environment('prod', { kind: 'production', deletionPolicy: 'Retain', ...spec })
  const isReady = (): Promise<string> =>
    hand.inProject('wait', '--for=condition=Ready', `environment/${hand.nameOf('prod')}`, '--timeout=120s')
  const claims = (path: string): Promise<string> =>
    hand.inProject('get', 'persistentvolumeclaims', '-o', `jsonpath={.items[*].${path}}`)
  const answer = async (): Promise<string> => (await client.psql('select answer from kept')).trim()

  it('has its pod deleted: there is another one, and every row', async () => {
    await hand.apply(production())
    await isReady()
    client = await startClientPod(release, { namespace: hand.namespace, name: hand.nameOf('prod') })
    await client.psql('create table kept as select 42 as answer')
    const pod = `pod/${instance}-0`
    const uid = await hand.inProject('get', pod, '-o', 'jsonpath={.metadata.uid}')
    await hand.inProject('delete', pod)
    await hand.inProject('wait', '--for=create', pod, '--timeout=60s')
    await hand.inProject('wait', '--for=condition=Ready', pod, '--timeout=60s')
    assert.notEqual(await hand.inProject('get', pod, '-o', 'jsonpath={.metadata.uid}'), uid)
    await isReady()
    assert.equal(await answer(), '42')
  })

  it('is suspended: no pod of it, its claim is kept; is resumed: every row', async () => {
    const before = await claims('metadata.uid')
    assert.match(before, /^\S+$/)
    await hand.apply(production({ suspended: true }))
    await hand.inPhase('prod', 'suspended')
    assert.equal((await hand.inProject('get', 'pods', '-o', 'name')).trim(), 'pod/client')
    assert.equal(await claims('metadata.uid'), before)
    await hand.apply(production({ suspended: false }))
    await hand.inPhase('prod', 'ready')
    assert.equal(await answer(), '42')
    await client.remove()
  })

  it('is deleted: its claim is kept, its volume is told to stay, and an event says where', async () => {
    const [before] = await volumesOf(release.cluster.objects, hand.namespace)
    const name = await claims('metadata.name')
    await hand.inProject('delete', `environment/${hand.nameOf('prod')}`, '--timeout=120s')
    assert.equal(await claims('metadata.name'), name)
    assert.equal(await claims(`metadata.labels.${LABELS.retained.replaceAll('.', '\\.')}`), 'true')
    const [after] = await volumesOf(release.cluster.objects, hand.namespace)
    assert.deepEqual(
      [after?.metadata?.uid, after?.spec?.persistentVolumeReclaimPolicy, after?.status?.phase],
      [before?.metadata?.uid, 'Retain', 'Bound'],
    )
    const events = [
      'get',
      'events.events.k8s.io',
      '--field-selector=reason=DataRetained',
      '-o',
      'jsonpath={.items[*].note}',
    ]
    for (const until = Date.now() + 10_000; ; ) {
      const told = await hand.inProject(...events)
      if (told.includes(`${hand.namespace}/${name}`)) break
      assert.ok(Date.now() < until, told)
      await sleep(250)
    }
    assert.equal((await hand.inProject('get', 'pods', '-o', 'name')).trim(), '')
  })
})
