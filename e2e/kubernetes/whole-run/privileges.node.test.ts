/** What our accounts may do is what they do, and secrets outside of projects are nobody's of ours. Runs after the scenarios. */
import assert from 'node:assert/strict'
import { skipBecause } from '../../../testkit/skip-because.ts'
import { Tenant } from '../../tenant.ts'
import { RELEASE_NAMESPACE } from '../installation.ts'
import { installedRelease, type Release } from '../release.ts'
import { privilegesOf, usedPrivileges } from './privileges.ts'

const ACCOUNTS = ['svc-operator', 'svc-apiserver'] as const

const bindingTo = (role: string, namespace: string): string =>
  JSON.stringify({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'svc-operator', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: 'svc-operator', namespace: RELEASE_NAMESPACE }],
  })

describe('privileges', function () {
  this.timeout(120_000)
  let release: Release
  /** While it is there, both accounts have what they have in projects. */
  let lasting: Tenant
  before(async () => {
    release = await installedRelease()
    lasting = await Tenant.create(release.world)
    await lasting.createEnvironment('lasting', { deletion_policy: 'delete' })
    const tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('short')
    await tenant.run('delete', 'short')
    const project = `/v1/organizations/${tenant.organizationId}/projects/${tenant.projectId}`
    await release.world.api.expect(204, 'DELETE', project)
    // Its namespace goes a moment later.
    const { namespace } = tenant.key('short')
    await release.kubectl.must(['wait', '--for=delete', `namespace/${namespace}`, '--timeout=100s'])
  })

  after(() => lasting.run('delete', 'lasting'))

  for (const name of ACCOUNTS)
    it(`${name} has no verb that it does not use`, async function () {
      const { audit } = release
      if (audit === undefined)
        return skipBecause(this, 'SERVICE_TEST_AUDIT_LOG does not name the audit log of the cluster')
      const user = `system:serviceaccount:${RELEASE_NAMESPACE}:${name}`
      const used = usedPrivileges(audit.lines().filter(line => line.user === user))
      const granted = await privilegesOf(release.cluster.objects, { namespace: RELEASE_NAMESPACE, name })
      assert.ok(granted.size > 5)
      assert.deepEqual(
        [...granted].filter(privilege => !used.has(privilege)),
        [],
      )
    })

  for (const name of ACCOUNTS)
    it(`${name} may read a Secret whose name it knows, and list or watch none`, async () => {
      const granted = await privilegesOf(release.cluster.objects, { namespace: RELEASE_NAMESPACE, name })
      assert.ok(granted.has('/secrets get'), 'It is granted nothing, or this is not how grants are written')
      const many = [...granted].filter(privilege =>
        /^[^/]*\/(secrets|\*) (list|watch|deletecollection|\*)$/.test(privilege),
      )
      assert.deepEqual(many, [])
    })

  it('the operator reads no Secret outside of projects, and cannot give itself the right to', async () => {
    const as = `--as=system:serviceaccount:${RELEASE_NAMESPACE}:svc-operator`
    const groups = ['--as-group=system:serviceaccounts', '--as-group=system:authenticated']
    for (const verb of ['get', 'list', 'watch']) {
      const { stdout } = await release.kubectl.run([
        'auth',
        'can-i',
        verb,
        'secrets',
        '-n',
        'kube-system',
        as,
        ...groups,
      ])
      assert.equal(stdout.trim(), 'no', verb)
    }
    for (const role of ['svc-operator-project', 'cluster-admin']) {
      const bound = await release.kubectl.run(
        ['create', '--dry-run=server', '-f', '-', as, ...groups],
        bindingTo(role, 'kube-system'),
      )
      assert.notEqual(bound.code, 0, `It may bind ${role} in kube-system`)
      assert.match(bound.stderr, /forbidden|denied/i)
    }
  })
})
