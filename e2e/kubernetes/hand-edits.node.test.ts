/** Somebody with kubectl and too many rights: what was changed is put right or told, and rows are there whatever was done. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from '../../crds/conditions.ts'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { instanceName, LABELS, shortUid } from '../../crds/metadata.ts'
import { Tenant } from '../tenant.ts'
import { volumesOf } from './left-behind.ts'
import { installedRelease, type Release } from './release.ts'

describe('an environment that somebody lays hands on', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let namespace: string
  let instance: string
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    ;({ namespace } = tenant.key('main'))
    instance = instanceName({
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      environmentId: 'main',
    })
    await tenant.createEnvironment('main', { deletion_policy: 'delete' })
    await tenant.sql('main', session => session.rows('create table kept as select 42 as answer'))
  })

  const kubectl = (...args: string[]): Promise<string> => release.kubectl.must(['--namespace', namespace, ...args])
  const environment = async (): Promise<Environment> => {
    const found = await release.world.store.get(environmentType, tenant.key('main'))
    assert.ok(found)
    return found
  }
  const until = async <T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
    for (const end = Date.now() + 60_000; ; ) {
      const seen = await look()
      if (holds(seen)) return seen
      assert.ok(Date.now() < end, `${what}: ${JSON.stringify(seen)}`)
      await sleep(100)
    }
  }
  const uidOf = async (...what: string[]): Promise<string> =>
    (await release.kubectl.run(['-n', namespace, 'get', ...what, '-o', 'jsonpath={.metadata.uid}'])).stdout
  const podUid = (): Promise<string> => uidOf('pod', `${instance}-0`)
  /** Events of the environment since the test began, by reason and note. */
  const told = async (reason: RegExp, since: number): Promise<string> => {
    const about = `regarding.name=${tenant.key('main').name}`
    const path = `--raw=/apis/events.k8s.io/v1/namespaces/${namespace}/events?fieldSelector=${about}`
    const events = async (): Promise<string[]> => {
      const { items } = JSON.parse(await kubectl('get', path)) as {
        items: { reason: string; note: string; eventTime: string; series?: { lastObservedTime: string } }[]
      }
      return items
        .filter(({ eventTime, series }) => Date.parse(series?.lastObservedTime ?? eventTime) >= since)
        .map(event => `${event.reason}: ${event.note}`)
    }
    const all = await until(`told of ${reason}`, events, seen => seen.some(line => reason.test(line)))
    return all.find(line => reason.test(line))!
  }
  /** Ready, and every row, over the connection that the API tells. */
  const isWhole = async (): Promise<void> => {
    await tenant.inPhase('main', 'ready')
    const rows = (): Promise<unknown> => tenant.sql('main', session => session.rows('select answer from kept'))
    await until(
      'rows',
      () => rows().catch(String),
      seen => JSON.stringify(seen) === '[{"answer":42}]',
    )
  }
  const touch = (): Promise<string> =>
    kubectl('annotate', 'senv', tenant.key('main').name, `svc.internal/touched=${Date.now()}`, '--overwrite')

  it('its StatefulSet is scaled to none: it runs again, and says so', async () => {
    const [before, since] = [await podUid(), Date.now() - 1000]
    await kubectl('scale', `statefulset/${instance}`, '--replicas=0')
    await until('another pod', podUid, uid => uid !== '' && uid !== before)
    await isWhole()
    await told(/^DriftCorrected/, since)
  })

  it('its Service is deleted: there is another at once, and Postgres ran on', async () => {
    const [service, pod, since] = [await uidOf('service', instance), await podUid(), Date.now() - 1000]
    await kubectl('delete', 'service', instance)
    await until(
      'another Service',
      () => uidOf('service', instance),
      uid => uid !== '' && uid !== service,
    )
    await isWhole()
    assert.equal(await podUid(), pod)
    await told(/^DriftCorrected/, since)
  })

  it('a label of its StatefulSet is changed: it is changed back', async () => {
    const since = Date.now() - 1000
    await kubectl('label', `statefulset/${instance}`, `${LABELS.environment}=other`, '--overwrite')
    const label = (): Promise<string> =>
      kubectl('get', `statefulset/${instance}`, '-o', `jsonpath={.metadata.labels.svc\\.internal/environment}`)
    await until('the label', label, value => value === 'main')
    await isWhole()
    await told(/^DriftCorrected/, since)
  })

  it('the Secret that programs mount is deleted: it comes back with the same password', async () => {
    const { namespace: place, name, uid } = (await environment()).metadata
    const { app } = credentialSecrets.names({ namespace: place, name, uid })
    const password = (): Promise<string> =>
      release.kubectl
        .run(['-n', namespace, 'get', 'secret', app, '-o', 'jsonpath={.data.password}'])
        .then(({ stdout }) => stdout)
    const [before, since] = [await password(), Date.now() - 1000]
    assert.notEqual(before, '')
    await kubectl('delete', 'secret', app)
    // Secrets are not watched: they are looked at when anything happens to the environment, and now and then.
    await touch()
    await until('the Secret', password, seen => seen === before)
    await isWhole()
    await told(/^DriftCorrected/, since)
  })

  it('what is in force is deleted: new passwords are made, and it says so', async () => {
    const { namespace: place, name, uid } = (await environment()).metadata
    const { ops } = credentialSecrets.names({ namespace: place, name, uid })
    const [pod, since] = [await podUid(), Date.now() - 1000]
    await kubectl('delete', 'secret', ops)
    await touch()
    await told(/^CredentialsRemade/, since)
    await isWhole()
    assert.equal(await podUid(), pod)
  })

  it('is asked to grow where the class of its volume cannot: it says so and runs on', async () => {
    const pod = await podUid()
    const storage = async () => conditionOf((await environment()).status?.conditions, 'StorageReady')?.reason
    await kubectl(
      'patch',
      'senv',
      tenant.key('main').name,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { resources: { storage: '64Gi' } } }),
    )
    await until('told', storage, reason => reason === 'VolumeNotExpandable')
    assert.equal(await podUid(), pod)
    await isWhole()
  })

  it('its claim is deleted: it says so and runs on; stopped, it is stalled with the reason until its volume is back', async () => {
    const since = Date.now() - 1000
    const claim = `${instance}-${shortUid((await environment()).metadata.uid)}`
    const definition = JSON.parse(await kubectl('get', 'pvc', claim, '-o', 'json')) as {
      readonly metadata: { readonly labels: object; readonly annotations: object }
      readonly spec: { readonly volumeName: string; readonly resources: object; readonly storageClassName: string }
    }
    const { volumeName, resources, storageClassName } = definition.spec
    const volume = async () =>
      (await volumesOf(release.cluster.objects, namespace))[0]?.spec?.persistentVolumeReclaimPolicy
    await kubectl('delete', 'pvc', claim, '--wait=false')
    const reason = async () => conditionOf((await environment()).status?.conditions, 'StorageReady')?.reason
    await until('told', reason, seen => seen === 'ClaimDeleted')
    await told(/^ClaimDeleted/, since)
    await until('the volume is kept', volume, seen => seen === 'Retain')
    await isWhole()

    await tenant.run('suspend', 'main')
    await kubectl('wait', '--for=delete', `pvc/${claim}`, '--timeout=60s')
    await release.world.api.expect(202, 'POST', tenant.path('main', '/resume'))
    const stalled = async () => conditionOf((await environment()).status?.conditions, 'Stalled')
    await until('stalled', stalled, seen => seen?.status === 'True' && seen.reason === 'DataMissing')
    assert.equal(await uidOf('pvc', claim), '', 'A claim was made anew')
    await told(/^DataMissing/, since)

    // As the reason's message says: its volume, under the same name.
    await kubectl('patch', 'pv', volumeName, '--type=json', '-p', '[{"op":"remove","path":"/spec/claimRef"}]')
    const { labels, annotations } = definition.metadata
    const again = {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
      metadata: { name: claim, namespace, labels, annotations },
      spec: { accessModes: ['ReadWriteOnce'], resources, volumeName, storageClassName },
    }
    await release.kubectl.must(['create', '-f', '-'], JSON.stringify(again))
    await isWhole()
    await tenant.run('delete', 'main')
  })
})
