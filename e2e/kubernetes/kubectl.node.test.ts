/** Somebody with kubectl alone: no call of the API, and yet the API knows it afterwards. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { API_VERSION, instanceName, LABELS, projectNamespace } from '../../crds/metadata.ts'
import { environmentName } from '../../lib/model/identifiers.ts'
import { Tenant } from '../tenant.ts'
import { everythingIn } from './everything-in.ts'
import { installedRelease, RELEASE_NAMESPACE, type Release } from './release.ts'

const MADE_BY_OPERATOR = /^(RoleBinding|ServiceAccount|NetworkPolicy) svc-/

describe('kubectl alone', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let namespace: string
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    namespace = projectNamespace(tenant.organizationId, tenant.projectId)
    // Nobody of ours answers calls while it is applied.
    await scaleApi(0)
    const labels = { [LABELS.organization]: tenant.organizationId, [LABELS.project]: tenant.projectId }
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } })
  })

  const kubectl = (...args: string[]): Promise<string> => release.kubectl.must(args)
  const inProject = (...args: string[]): Promise<string> => kubectl('--namespace', namespace, ...args)
  const apply = (object: object): Promise<string> => release.kubectl.must(['apply', '-f', '-'], JSON.stringify(object))
  const scaleApi = async (replicas: number): Promise<void> => {
    const deployment = ['deployment/svc-apiserver', '--namespace', RELEASE_NAMESPACE]
    await kubectl('scale', ...deployment, `--replicas=${replicas}`)
    await kubectl('rollout', 'status', ...deployment, '--timeout=120s')
  }
  const nameOf = (environmentId: string): string =>
    environmentName({ organizationId: tenant.organizationId, projectId: tenant.projectId, environmentId })
  const environment = (environmentId: string, spec: Readonly<Record<string, unknown>> = {}): object => ({
    apiVersion: API_VERSION,
    kind: 'Environment',
    metadata: { name: nameOf(environmentId), namespace },
    spec: {
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      environmentId,
      kind: 'staging',
      deletionPolicy: 'Delete',
      ...spec,
    },
  })

  it('makes an environment ready with no API server, and says so in columns, conditions and events', async () => {
    await apply(environment('by-hand'))
    const resource = `environment/${nameOf('by-hand')}`
    await inProject('wait', '--for=condition=Ready', resource, '--timeout=120s')
    await inProject('wait', '--for=jsonpath={.status.phase}=ready', resource, '--timeout=10s')
    const table = await kubectl('get', 'environments', '--all-namespaces')
    const [heading, ...rows] = table.trim().split('\n')
    assert.match(heading!, /NAMESPACE +NAME +PHASE +KIND +READY +EXPIRES +AGE/)
    assert.match(rows.find(row => row.includes(nameOf('by-hand')))!, /ready +staging +True/)
    assert.match(await inProject('get', 'senv', '-o', 'wide'), /by-hand.*\.svc/)
    const told = await inProject('describe', resource)
    const events = told.slice(told.lastIndexOf('Events:'))
    assert.ok(events.indexOf('Provisioning') >= 0 && events.indexOf('Provisioning') < events.indexOf('Ready'), events)
  })

  it('explains every field', async () => {
    for (const field of ['spec', 'status', 'spec.resources', 'spec.request', 'status.endpoint']) {
      const told = await kubectl('explain', `environments.${field}`)
      assert.doesNotMatch(told, /<no description>/, field)
    }
  })

  it('suspends and resumes by a field, and the rows are there', async () => {
    const instance = instanceName({
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      environmentId: 'by-hand',
    })
    const psql = (sql: string): Promise<string> =>
      inProject('exec', `${instance}-0`, '--', 'psql', '-XAtq', '-U', 'postgres', '-d', 'app', '-c', sql)
    const suspended = (value: boolean): Promise<string> =>
      inProject('patch', 'senv', nameOf('by-hand'), '--type=merge', '-p', `{"spec":{"suspended":${value}}}`)
    const inPhase = (phase: string): Promise<string> =>
      inProject('wait', `--for=jsonpath={.status.phase}=${phase}`, `senv/${nameOf('by-hand')}`, '--timeout=120s')
    await psql('create table kept as select 42 as answer')
    await suspended(true)
    await inPhase('suspended')
    assert.equal((await inProject('get', 'pods', '-o', 'name')).trim(), '')
    await suspended(false)
    await inPhase('ready')
    assert.equal((await psql('select answer from kept')).trim(), '42')
  })

  it('refuses what must not be lost: a protected environment, its namespace, our definitions', async () => {
    await apply(environment('guarded', { deletionProtection: true }))
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

  it('delete leaves nothing behind', async () => {
    await inProject('delete', `environment/${nameOf('by-hand')}`, '--timeout=120s')
    const until = Date.now() + 60_000
    for (;;) {
      const left = [...(await everythingIn(release.cluster.api, namespace)).keys()]
      if (left.every(name => MADE_BY_OPERATOR.test(name))) break
      assert.ok(Date.now() < until, left.join(', '))
      await sleep(250)
    }
    await kubectl('delete', 'namespace', namespace, '--timeout=120s')
  })
})
