/** Our definitions deleted with environments alive: refused; by who insists, every environment goes and no claim with it. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import { Tenant } from '../tenant.ts'
import { volumesOf } from './left-behind.ts'
import { installedRelease, type Release } from './release.ts'

const DEFINITION = ['customresourcedefinition', 'environments.svc.internal']

describe('the definition of environments', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let namespace: string
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    ;({ namespace } = tenant.key('preview'))
    await Promise.all([
      tenant.createEnvironment('preview', { kind: 'preview' }),
      tenant.createEnvironment('protected', { deletion_protection: true, deletion_policy: 'delete' }),
    ])
  })

  const claims = (): Promise<string> =>
    release.kubectl.must([
      ...['--namespace', namespace, 'get', 'persistentvolumeclaims'],
      ...['-o', 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.deletionTimestamp} {.status.phase}{"\\n"}{end}'],
    ])

  it('is not deleted while it carries no permission, and every environment lives on', async () => {
    const { code, stderr } = await release.kubectl.run(['delete', ...DEFINITION, '--wait=false'])
    assert.notEqual(code, 0)
    assert.match(stderr, /deletes every object of this kind/)
    for (const id of ['preview', 'protected']) {
      const found = await release.world.store.get(environmentType, tenant.key(id))
      assert.deepEqual([found?.metadata.deletionTimestamp, found?.status?.phase], [undefined, 'ready'])
    }
  })

  it('is deleted with permission: no claim goes, of nothing, and both programs are well when it is back', async () => {
    const before = await claims()
    assert.equal(before.trim().split('\n').length, 2)
    const volumes = async (): Promise<string[]> =>
      (await volumesOf(release.cluster.objects, namespace))
        .map(({ metadata, status }) => `${metadata?.uid} ${status?.phase}`)
        .sort()
    const volumesBefore = await volumes()
    await release.kubectl.must(['annotate', ...DEFINITION, `${ANNOTATIONS.allowDeletion}=true`])
    await release.kubectl.must(['delete', ...DEFINITION, '--timeout=120s'])
    assert.equal(await claims(), before)
    assert.deepEqual(await volumes(), volumesBefore)
    await release.helm('upgrade', 'svc-crds', 'charts/svc-crds')
    await release.kubectl.must(['wait', ...DEFINITION, '--for=condition=Established', '--timeout=60s'])
    // Whoever asks for one has one, of the same programs.
    const next = await Tenant.create(release.world)
    for (const end = Date.now() + 60_000; ; ) {
      const { status, text } = await next.requestEnvironment('next')
      if (status === 202) break
      assert.ok(Date.now() < end, text)
      await sleep(500)
    }
    await next.inPhase('next', 'ready')
    await next.run('delete', 'next')
    assert.equal(await claims(), before)
    await tenant.inPhase('preview', 'deleted')
  })
})
