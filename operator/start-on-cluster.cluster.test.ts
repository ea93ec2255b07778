/**
 * The operator on a real API server whose pods, volumes and Postgres servers are played: what people do with kubectl alone,
 * and what they find. What only a node can prove is proven on one.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { V1PersistentVolume, V1PersistentVolumeClaim, V1Secret, V1Service } from '@kubernetes/client-node'
import { Registry } from 'prom-client'
import { AUTHORITIES_KEY, credentialSecrets } from '../crds/credential-secrets.ts'
import type { DeletionRecord } from '../crds/deletion-record.ts'
import { deletionRecordName } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment, EnvironmentSpec } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { instanceName, LABELS, labelValue, shortUid } from '../crds/metadata.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import type { KubernetesObject, ObjectType } from '../runtime/kubernetes/kubernetes-object.ts'
import { KubernetesResourceStore } from '../runtime/kubernetes/kubernetes-resource-store.ts'
import { silentLog } from '../runtime/log/log.ts'
import { eventually } from '../testkit/dispatch-world.ts'
import { AuditLog, auditLogOf } from '../testkit/kubernetes/audit-log.ts'
import { namespaces, type TestCluster } from '../testkit/kubernetes/cluster.ts'
import { type FakedCluster, fakedCluster } from '../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../testkit/kubernetes/kubectl.ts'
import { skipBecause } from '../testkit/skip-because.ts'
import { operatorConfig } from './config/config.ts'
import { type ClusterOperator, startOnCluster } from './start-on-cluster.ts'

const SECRETS: ObjectType<V1Secret> = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' }
const SERVICES: ObjectType<V1Service> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }
const CLAIMS: ObjectType<V1PersistentVolumeClaim> = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
}
const VOLUMES: ObjectType<V1PersistentVolume> = {
  ...{ apiVersion: 'v1', kind: 'PersistentVolume', plural: 'persistentvolumes', clusterScoped: true },
}
const EVENTS: ObjectType<
  KubernetesObject & {
    readonly reason?: string
    readonly note?: string
    readonly series?: { readonly count: number }
    readonly regarding?: { readonly uid?: string }
  }
> = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
}

describe('the operator on a cluster', function () {
  this.timeout(120_000)
  let faked: FakedCluster
  let cluster: TestCluster
  let store: KubernetesResourceStore
  let system: string
  let operator: ClusterOperator
  let registry: Registry
  let kubectl: ReturnType<typeof kubectlOn>

  const startOperator = (): Promise<ClusterOperator> =>
    startOnCluster({
      config: operatorConfig({ SERVICE_OPERATOR_NAMESPACE: system }, 'kubernetes'),
      environments: {},
      identity: 'the-one',
      log: silentLog,
      registry: (registry = new Registry()),
      kubeconfig: cluster.kubeconfig,
    })

  before(async function () {
    faked = await fakedCluster(this)
    cluster = faked.cluster
    system = faked.namespace
    kubectl = kubectlOn(cluster.kubeconfig)
    store = new KubernetesResourceStore(cluster.api, 'kubectl')
    operator = await startOperator()
    await eventually(
      async () => operator.ready(),
      why => why === undefined,
      'the operator is ready',
      30_000,
    )
  })
  after(async () => {
    /* eslint-disable @typescript-eslint/no-unnecessary-condition -- skipped before they were started */
    await operator?.stop()
    await faked?.assertSound()
    /* eslint-enable @typescript-eslint/no-unnecessary-condition */
  })

  interface Place {
    readonly namespace: string
    readonly projectId: string
  }
  const project = async (labelled = true): Promise<Place> => {
    const projectId = `p${randomBytes(5).toString('hex')}`
    const labels = { [LABELS.organization]: 'org', [LABELS.project]: labelValue(projectId) }
    return { projectId, namespace: await cluster.namespace('run', labelled ? labels : {}) }
  }
  const keyIn = ({ namespace, projectId }: Place) => ({
    namespace,
    name: environmentName({ organizationId: 'org', projectId, environmentId: 'main' }),
  })
  const get = (place: Place): Promise<Environment | undefined> => store.get(environmentType, keyIn(place))
  const apply = async (place: Place, spec: Partial<EnvironmentSpec> = {}): Promise<void> => {
    const { organizationId, environmentId } = { organizationId: 'org', environmentId: 'main' }
    const object = {
      apiVersion: 'svc.internal/v1alpha1',
      kind: 'Environment',
      metadata: keyIn(place),
      spec: { organizationId, projectId: place.projectId, environmentId, kind: 'staging', ...spec },
    }
    await kubectl.must(['apply', '-f', '-'], JSON.stringify(object))
  }
  const patch = (place: Place, spec: Record<string, unknown>): Promise<string> => {
    const { namespace, name } = keyIn(place)
    return kubectl.must(['-n', namespace, 'patch', 'senv', name, '--type', 'merge', '-p', JSON.stringify({ spec })])
  }
  const wait = (place: Place, condition: string): Promise<string> => {
    const { namespace, name } = keyIn(place)
    return kubectl.must(['-n', namespace, 'wait', `senv/${name}`, `--for=${condition}`, '--timeout=40s'])
  }
  const made = async (spec: Partial<EnvironmentSpec> = {}): Promise<Place & { readonly uid: string }> => {
    const place = await project()
    await apply(place, spec)
    await wait(place, 'condition=Ready')
    return { ...place, uid: (await get(place))!.metadata.uid }
  }
  const remove = (place: Place): Promise<string> => {
    const { namespace, name } = keyIn(place)
    return kubectl.must(['-n', namespace, 'delete', 'senv', name, '--timeout=40s'])
  }
  const record = (uid: string): Promise<DeletionRecord | undefined> =>
    store.get(deletionRecordType, { namespace: system, name: deletionRecordName(uid) })
  const story = async ({ namespace, uid }: { readonly namespace: string; readonly uid: string }): Promise<string[]> =>
    (await cluster.objects.list(EVENTS, { namespace })).items
      .filter(({ regarding, reason }) => regarding?.uid === uid && reason !== 'Unschedulable')
      .map(({ reason = '' }) => reason)
  const appSecret = async (
    place: Place,
    uid: string,
  ): Promise<{ readonly name: string; readonly password: string; readonly authorities: string }> => {
    const { app: name } = credentialSecrets.names({ ...keyIn(place), uid })
    const secret = await cluster.objects.get(SECRETS, { namespace: place.namespace, name })
    const read = (key: string): string => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString()
    return { name, password: read('password'), authorities: read(AUTHORITIES_KEY) }
  }
  const isProtected = async (namespace: string): Promise<boolean> =>
    (await cluster.objects.get(namespaces, { namespace: '', name: namespace }))?.metadata?.labels?.[
      LABELS.protected
    ] === 'true'

  it('takes what kubectl alone made through its life, whose events tell it in order', async () => {
    const place = await made()
    const { status, metadata } = (await get(place))!
    assert.equal(status?.resources?.memory, '512Mi')
    assert.equal(status.endpoint?.sslmode, 'verify-full')
    assert.equal(metadata.finalizers.length, 1)
    const wide = await kubectl.must(['-n', place.namespace, 'get', 'environments', '-o', 'wide'])
    const [heading = '', row = ''] = wide.split('\n')
    assert.match(heading, /^NAME +PHASE +KIND +READY +EXPIRES +AGE +NODE +DATA MODE +ENDPOINT +REASON *$/)
    assert.equal(row.slice(heading.indexOf('NODE')).split(' ')[0], faked.pods.node)
    await patch(place, { suspended: true })
    await wait(place, 'jsonpath={.status.phase}=suspended')
    assert.equal((await get(place))?.status?.node, undefined)
    await patch(place, { suspended: false })
    await wait(place, 'condition=Ready')
    await eventually(
      () => story(place),
      seen => seen.includes('Resumed'),
      'the story is told',
    )
    assert.deepEqual(await story(place), ['Provisioning', 'Ready', 'Suspending', 'Suspended', 'Resuming', 'Resumed'])
    await remove(place)
    const { spec } = (await record(place.uid))!
    assert.deepEqual([spec.cause, spec.retained], ['external', false])
    for (const { apiVersion, kind, plural } of [SECRETS, SERVICES, CLAIMS])
      await eventually(
        () => cluster.objects.list({ apiVersion, kind, plural }, { namespace: place.namespace }),
        ({ items }) => items.length === 0,
        `no ${plural} are left`,
      )
  })

  it('rotates passwords on request, and puts right what somebody did to their Secret', async () => {
    const place = await made()
    const before = await appSecret(place, place.uid)
    assert.equal(before.authorities, (await get(place))?.status?.endpoint?.caCertificate)
    await patch(place, { credentialsRotation: 'now' })
    await wait(place, 'jsonpath={.status.credentialsRotation}=now')
    const after = await appSecret(place, place.uid)
    assert.notEqual(after.password, before.password)
    await kubectl.must(['-n', place.namespace, 'delete', 'secret', after.name])
    await patch(place, { credentialsRotation: 'again' })
    await wait(place, 'jsonpath={.status.credentialsRotation}=again')
    const repaired = await appSecret(place, place.uid)
    assert.ok(![before.password, after.password, ''].includes(repaired.password))
    await remove(place)
  })

  it('tells of everything that it puts right after somebody’s hands, once', async () => {
    const place = await made({ kind: 'production' })
    const { namespace, uid } = place
    const instance = instanceName({ organizationId: 'org', projectId: place.projectId, environmentId: 'main' })
    const [volume] = await eventually(
      async () => (await cluster.objects.list(VOLUMES, { labels: { [LABELS.uid]: uid } })).items,
      ({ length }) => length === 1,
      'the volume is labelled',
    )
    const claim = `${instance}-${shortUid(uid)}`
    const name = volume?.metadata?.name ?? ''
    const hands: readonly (readonly [told: string, args: readonly string[]])[] = [
      [`The StatefulSet ${instance} was not as it should be and was put right`, ['label', 'statefulset', instance]],
      [`The Service ${instance} was not as it should be and was put right`, ['label', 'service', instance]],
      [`The Pod ${instance}-0 was not as it should be and was put right`, ['label', 'pod', `${instance}-0`]],
      [`The PersistentVolumeClaim ${claim} was not as it should be and was put right`, ['label', 'pvc', claim]],
      [`The PersistentVolume ${name} was not as it should be and was put right`, ['label', 'pv', name]],
      [`The Service ${instance} was gone and was made anew`, ['delete', 'service', instance]],
    ]
    const notes = async (): Promise<(string | undefined)[]> =>
      (await cluster.objects.list(EVENTS, { namespace })).items
        .filter(({ regarding, reason }) => regarding?.uid === uid && reason === 'DriftCorrected')
        .map(({ note, series }) => (series === undefined ? note : `${note} ×${series.count}`))
    for (const [told, args] of hands) {
      const label = args[0] === 'label' ? ['--overwrite', `${LABELS.environment}=changed`] : []
      await kubectl.must(['-n', namespace, ...args, ...label])
      await eventually(notes, seen => seen.includes(told), told)
    }
    await wait(place, 'condition=Ready')
    const counted = await registry.getSingleMetric('drift_corrections_total')?.get()
    const kinds = new Set(counted?.values.map(({ labels }) => labels['kind']))
    for (const kind of ['StatefulSet', 'Service', 'Pod', 'PersistentVolumeClaim', 'PersistentVolume'])
      assert.ok(kinds.has(kind), kind)
    assert.deepEqual((await notes()).sort(), hands.map(([told]) => told).sort())
    await remove(place)
  })

  it('puts back at once what a project’s namespace needs, and tells it in the stories of its environments', async () => {
    const place = await made()
    const { namespace, uid } = place
    const everybody = JSON.stringify({ spec: { ingress: [{}] } })
    const hands: readonly (readonly [told: string, args: readonly string[]])[] = [
      ['The NetworkPolicy svc-postgres was gone and was made anew', ['delete', 'networkpolicy', 'svc-postgres']],
      [
        'The NetworkPolicy svc-postgres was not as it should be and was put right',
        ['patch', 'networkpolicy', 'svc-postgres', '--type', 'merge', '-p', everybody],
      ],
      ['The ServiceAccount svc-postgres was gone and was made anew', ['delete', 'serviceaccount', 'svc-postgres']],
      [
        'The ServiceAccount svc-postgres was not as it should be and was put right',
        ['patch', 'serviceaccount', 'svc-postgres', '-p', '{"automountServiceAccountToken":true}'],
      ],
      ['The RoleBinding svc-apiserver was gone and was made anew', ['delete', 'rolebinding', 'svc-apiserver']],
    ]
    const told = async (): Promise<readonly (string | undefined)[]> =>
      (await cluster.objects.list(EVENTS, { namespace })).items
        .filter(({ regarding, reason }) => regarding?.uid === uid && reason === 'DriftCorrected')
        .map(({ note }) => note)
    for (const [sentence, args] of hands) {
      await kubectl.must(['-n', namespace, ...args])
      await eventually(told, seen => seen.includes(sentence), sentence, 20_000)
    }
    const policy = await kubectl.must(['-n', namespace, 'get', 'networkpolicy', 'svc-postgres', '-o', 'json'])
    const { spec } = JSON.parse(policy) as { spec: { ingress: readonly { from?: unknown }[] } }
    assert.ok(spec.ingress.every(({ from }) => from !== undefined))
    assert.equal((await told()).length, hands.length)

    // While no operator was there to see it.
    await operator.stop()
    await kubectl.must(['-n', namespace, 'delete', 'networkpolicy', 'svc-postgres'])
    operator = await startOperator()
    const look = (): Promise<{ readonly code: number | null }> =>
      kubectl.run(['-n', namespace, 'get', 'networkpolicy', 'svc-postgres'])
    await eventually(look, ({ code }) => code === 0, 'the policy is back', 30_000)
    await remove(place)
  })

  it('leaves alone what lies in a namespace that does not say so, and goes on once it does', async () => {
    const place = await project(false)
    await apply(place)
    await wait(place, 'condition=Stalled')
    const stalled = (await get(place))!
    assert.equal(stalled.status?.conditions?.find(({ type }) => type === 'Stalled')?.reason, 'NamespaceMismatch')
    assert.deepEqual((await cluster.objects.list(SECRETS, { namespace: place.namespace })).items, [])
    const labels = [`${LABELS.organization}=org`, `${LABELS.project}=${place.projectId}`]
    await kubectl.must(['label', 'namespace', place.namespace, ...labels])
    await wait(place, 'condition=Ready')
    await remove(place)
  })

  it('lets a namespace end that is deleted with a live environment in it, and says what it kept', async () => {
    const [preview, production] = [await made({ kind: 'preview', ttlHours: 5 }), await made({ kind: 'production' })]
    for (const { namespace } of [preview, production])
      await kubectl.must(['delete', 'namespace', namespace, '--timeout=60s'])
    assert.equal((await record(preview.uid))?.spec.retained, false)
    const kept = (await record(production.uid))!.spec
    const { items } = await cluster.objects.list(VOLUMES)
    const left = items.filter(({ spec }) => spec?.claimRef?.namespace === production.namespace)
    assert.deepEqual(
      [kept.retainedAt],
      left.map(({ metadata }) => `persistentvolume/${metadata?.name ?? ''}`),
    )
  })

  it('labels a namespace while something protected or retained is in it', async () => {
    const place = await made({ kind: 'production', deletionProtection: true })
    await eventually(
      () => isProtected(place.namespace),
      is => is,
      'it is protected',
    )
    await patch(place, { deletionProtection: false })
    await eventually(
      () => isProtected(place.namespace),
      is => !is,
      'it is not any more',
    )
    await remove(place)
    await eventually(
      () => isProtected(place.namespace),
      is => is,
      'what was retained protects it',
    )
    const [claim] = (await cluster.objects.list(CLAIMS, { namespace: place.namespace })).items
    await kubectl.must(['-n', place.namespace, 'delete', 'pvc', claim?.metadata?.name ?? ''])
    await eventually(
      () => isProtected(place.namespace),
      is => !is,
      'nothing is left to protect',
    )
  })

  it('writes nothing while nothing happens, a new start included', async function () {
    const path = auditLogOf('api')
    if (path === undefined)
      return skipBecause(this, 'SERVICE_TEST_API_AUDIT_LOG does not name the audit log of the cluster')
    const [ready, asleep] = [await made({ kind: 'production' }), await made()]
    await patch(asleep, { suspended: true })
    await wait(asleep, 'jsonpath={.status.phase}=suspended')
    await eventually(
      async () => (await cluster.objects.list(VOLUMES, { labels: { [LABELS.uid]: ready.uid } })).items.length,
      count => count === 1,
      'the volume is labelled',
    )
    await operator.stop()
    const log = new AuditLog(path)
    operator = await startOperator()
    await eventually(
      async () => operator.ready(),
      why => why === undefined,
      'the operator is ready again',
      30_000,
    )
    await new Promise(resolve => setTimeout(resolve, 2_000))
    const places = [ready.namespace, asleep.namespace]
    const volumes = (await cluster.objects.list(VOLUMES)).items
      .filter(({ spec }) => places.includes(spec?.claimRef?.namespace ?? ''))
      .map(({ metadata }) => metadata?.name ?? '')
    const lines = await log.linesUntil(cluster.objects)
    const writes = lines.filter(
      ({ userAgent, verb, resource, namespace, name }) =>
        userAgent.startsWith('svc-operator/') &&
        !['get', 'list', 'watch'].includes(verb) &&
        !['events', 'leases'].includes(resource) &&
        [...places, ...volumes].some(mine => mine === namespace || mine === name),
    )
    assert.ok(
      lines.some(({ userAgent }) => userAgent.startsWith('svc-operator/')),
      'the log is of another cluster',
    )
    assert.deepEqual(writes, [])
    for (const place of [ready, asleep]) await remove(place)
  })
})
