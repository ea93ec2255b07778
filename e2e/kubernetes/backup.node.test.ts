/** The control-plane database is lost and comes back, by the commands of docs/operations.md as they are printed there. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blocksBelow } from '../../testkit/documented-blocks.ts'
import { succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { Tenant } from '../tenant.ts'
import { RELEASE_NAMESPACE } from './installation.ts'
import { installedRelease, type Release } from './release.ts'

const CHECKOUT = join(import.meta.dirname, '../..')

describe('a backup of the control-plane database', function () {
  this.timeout(600_000)
  let release: Release
  let folder: string
  before(async () => {
    release = await installedRelease()
    // The charts are where somebody who follows the page has them, and what is written is not in the checkout.
    folder = mkdtempSync(join(tmpdir(), 'svc-backup-'))
    symlinkSync(join(CHECKOUT, 'charts'), join(folder, 'charts'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const run = (script: string): Promise<string> =>
    succeeded('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: folder,
      env: { KUBECONFIG: release.cluster.kubeconfig },
    })
  const system = (...args: string[]): Promise<string> =>
    release.kubectl.must(['--namespace', RELEASE_NAMESPACE, ...args])

  it('brings back everything that was there when it was taken, and no environment notices', async () => {
    const [backup, restore, ...more] = blocksBelow('docs/operations.md', 'Backup of the control-plane database')
    assert.ok(backup && restore && more.length === 0)
    const tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('kept', { deletion_policy: 'delete' })
    await tenant.sql('kept', session => session.rows('create table notes as select 42 as answer'))
    const podUid = async (): Promise<string | undefined> =>
      (await release.cluster.objects.list(POD, { namespace: tenant.key('kept').namespace })).items[0]?.metadata?.uid
    const audit = await tenant.auditEvents()

    await run(backup)
    // The cluster goes on, and knows requests that the rows will not.
    const later = await Tenant.create(release.world)
    await tenant.run('suspend', 'kept')
    await tenant.run('resume', 'kept')
    const [pod, uid] = [await podUid(), await tenant.uid('kept')]
    await release.helm('uninstall', 'svc', '--wait')
    const claims = ['persistentvolumeclaims', '--selector', 'app.kubernetes.io/component=database']
    assert.match(await system('get', ...claims, '--output', 'name'), /svc-database/)
    await system('delete', ...claims)
    await system('delete', 'secrets', 'svc-master-key', 'svc-ca', 'svc-database', 'svc-database-tls')
    await run(restore)

    // The token that was given out before is good, and says what it said.
    assert.equal((await tenant.inPhase('kept', 'ready')).phase, 'ready')
    assert.deepEqual([await podUid(), await tenant.uid('kept')], [pod, uid])
    assert.deepEqual((await tenant.auditEvents()).slice(0, audit.length), audit)
    assert.deepEqual(await tenant.sql('kept', session => session.rows('select answer from notes')), [{ answer: 42 }])
    const path = `/v1/organizations/${later.organizationId}`
    assert.equal((await release.world.api.call('GET', path)).status, 404, 'what came after the backup is not lost')
    // It is no picture of what was: everything works.
    await tenant.run('suspend', 'kept')
    await tenant.run('resume', 'kept')
    assert.deepEqual(await tenant.sql('kept', session => session.rows('select answer from notes')), [{ answer: 42 }])
    await tenant.run('delete', 'kept')
    // Those who come after find their values.
    await release.upgrade([])
  })
})
