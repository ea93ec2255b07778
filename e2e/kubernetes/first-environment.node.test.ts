/** What somebody does first with an installation, by REST and psql alone: rows outlive the pod, a sleep, and a deletion that keeps. */
import assert from 'node:assert/strict'
import { instanceName } from '../../crds/metadata.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { Tenant } from '../tenant.ts'
import { type ClientPod, startClientPod } from './client-pod.ts'
import { nothingIsLeft, volumesOf } from './left-behind.ts'
import { installedRelease, type Release } from './release.ts'

describe('the first environment', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let namespace: string
  let client: ClientPod
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    ;({ namespace } = tenant.key('main'))
  })

  const kubectl = (...args: string[]): Promise<string> => release.kubectl.must(['--namespace', namespace, ...args])
  const instanceOf = (environmentId: string): string =>
    instanceName({ organizationId: tenant.organizationId, projectId: tenant.projectId, environmentId })
  const podNames = async (): Promise<string[]> =>
    (await release.cluster.objects.list(POD, { namespace })).items.map(({ metadata }) => metadata?.name ?? '')
  const bodies = (): Promise<string> => client.psql('select string_agg(body, $$,$$ order by id) from notes')

  it('takes rows from a pod that mounts its Secret and proves the server, and through a port-forward', async () => {
    await tenant.createEnvironment('main', { deletion_policy: 'delete' })
    client = await startClientPod(release, tenant.key('main'))
    await client.psql(`create table notes (id int primary key, body text); insert into notes values (1, 'pod')`)
    await client.psqlByUri(`insert into notes values (2, 'uri')`)
    await tenant.sql('main', session => session.rows(`insert into notes values (3, 'forward')`))
    assert.equal((await bodies()).trim(), 'pod,uri,forward')
    assert.equal((await client.psql('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).trim(), 't')
  })

  it('has its pod deleted: there is another one, and every row', async () => {
    const pod = `pod/${instanceOf('main')}-0`
    const uid = await kubectl('get', pod, '-o', 'jsonpath={.metadata.uid}')
    await kubectl('delete', pod)
    await kubectl('wait', '--for=create', pod, '--timeout=60s')
    await kubectl('wait', '--for=condition=Ready', pod, '--timeout=60s')
    assert.notEqual(await kubectl('get', pod, '-o', 'jsonpath={.metadata.uid}'), uid)
    await tenant.inPhase('main', 'ready')
    assert.equal((await bodies()).trim(), 'pod,uri,forward')
  })

  it('is suspended: no pod of it, its claim is kept; is resumed: every row', async () => {
    const claims = () => kubectl('get', 'persistentvolumeclaims', '-o', 'jsonpath={.items[*].metadata.uid}')
    const before = await claims()
    await tenant.run('suspend', 'main')
    assert.deepEqual(await podNames(), ['client'])
    assert.equal(await claims(), before)
    assert.notEqual(before, '')
    await tenant.run('resume', 'main')
    assert.equal((await bodies()).trim(), 'pod,uri,forward')
  })

  it('is deleted: nothing is left of it, of any kind', async () => {
    await client.remove()
    await tenant.run('delete', 'main')
    await nothingIsLeft(release, namespace)
  })

  it('production is deleted: its claim is kept, its volume is told to stay, and the namespace refuses to go', async () => {
    await tenant.createEnvironment('prod', { kind: 'production' })
    await tenant.sql('prod', session => session.rows('create table kept as select 42 as answer'))
    const [before] = await volumesOf(release.cluster.objects, namespace)
    assert.equal(before?.spec?.persistentVolumeReclaimPolicy, 'Retain')
    const { result } = await tenant.run('delete', 'prod')
    const place = String(result?.['retained_at'])
    assert.ok(place.endsWith(`${namespace}/${before.spec.claimRef?.name}`), place)
    assert.ok(await release.world.isKept(place))
    const [after] = await volumesOf(release.cluster.objects, namespace)
    assert.deepEqual(
      [after?.metadata?.uid, after?.spec?.persistentVolumeReclaimPolicy, after?.status?.phase],
      [before.metadata?.uid, 'Retain', 'Bound'],
    )
    assert.deepEqual(await podNames(), [])
    const refused = await release.kubectl.run(['delete', 'namespace', namespace, '--wait=false'])
    assert.notEqual(refused.code, 0, 'The namespace of retained data may be deleted')
    assert.match(refused.stderr, /holds protected environments or retained data/)
  })
})
