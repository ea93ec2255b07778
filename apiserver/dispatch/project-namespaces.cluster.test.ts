/** Namespaces of projects on a real API server. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { LABELS, projectNamespace } from '../../crds/metadata.ts'
import type { KubernetesObject } from '../../runtime/kubernetes/kubernetes-object.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { apiCluster, namespaces, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { kubernetesProjectNamespaces } from './kubernetes-project-namespaces.ts'
import { ForeignNamespaceError, NamespaceGoingError, type ProjectPlace } from './project-namespaces.ts'

const claims = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' }

describe('kubernetesProjectNamespaces', function () {
  this.timeout(60_000)
  let cluster: TestCluster
  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
  })

  const place = (): ProjectPlace => {
    const [organizationId, projectId] = ['acme', `run-${randomBytes(4).toString('hex')}`]
    const namespace = projectNamespace(organizationId, projectId)
    atEnd(async () => {
      const found = await find(namespace)
      if (found?.metadata?.uid !== undefined)
        await cluster.objects.delete(namespaces, { namespace: '', name: namespace }, { uid: found.metadata.uid })
    })
    return { organizationId, projectId, namespace }
  }
  const find = (name: string): Promise<KubernetesObject | undefined> =>
    cluster.objects.get(namespaces, { namespace: '', name })
  const gone = async (name: string): Promise<void> => {
    while ((await find(name)) !== undefined) await new Promise(resolve => setTimeout(resolve, 100))
  }

  it('makes one that says whose it is and holds pods to the restricted profile, once, however many ask at once', async () => {
    const project = place()
    const two = [kubernetesProjectNamespaces(cluster.objects), kubernetesProjectNamespaces(cluster.objects)]
    await Promise.all([...two, ...two].map(each => each.ensure(project)))
    const labels = (await find(project.namespace))?.metadata?.labels ?? {}
    assert.equal(labels[LABELS.organization], 'acme')
    assert.equal(labels[LABELS.project], project.projectId)
    assert.equal(labels['pod-security.kubernetes.io/enforce'], 'restricted')
  })

  it('takes one that a cluster admin has made and labelled, and no other', async () => {
    const [theirs, foreign] = [place(), place()]
    const labels = { [LABELS.organization]: 'acme', [LABELS.project]: theirs.projectId, team: 'blue' }
    await cluster.objects.create(namespaces, { metadata: { name: theirs.namespace, labels } })
    await cluster.objects.create(namespaces, { metadata: { name: foreign.namespace, labels } })
    const own = kubernetesProjectNamespaces(cluster.objects)
    await own.ensure(theirs)
    assert.equal((await find(theirs.namespace))?.metadata?.labels?.['team'], 'blue')
    await assert.rejects(own.ensure(foreign), ForeignNamespaceError)
    assert.deepEqual(await own.remove(foreign), { kept: 'its labels say that it is not this project’s' })
    assert.ok(await find(foreign.namespace))
  })

  it('removes an empty one, says that it is going meanwhile, and makes it anew', async () => {
    const project = place()
    const own = kubernetesProjectNamespaces(cluster.objects)
    await own.ensure(project)
    const first = (await find(project.namespace))?.metadata?.uid
    assert.equal(await own.remove(project), 'removed')
    if ((await find(project.namespace)) !== undefined) await assert.rejects(own.ensure(project), NamespaceGoingError)
    assert.equal(await own.remove(project), 'absent')
    await gone(project.namespace)
    await own.ensure(project)
    assert.notEqual((await find(project.namespace))?.metadata?.uid, first)
  })

  it('keeps one with a claim, or with an Environment that nobody told us of', async () => {
    const [withClaim, withEnvironment] = [place(), place()]
    const own = kubernetesProjectNamespaces(cluster.objects)
    for (const project of [withClaim, withEnvironment]) await own.ensure(project)
    await cluster.objects.create(claims, {
      metadata: { name: 'kept', namespace: withClaim.namespace },
      ...{ spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } } },
    })
    const { namespace, organizationId, projectId } = withEnvironment
    await cluster.objects.create(
      { apiVersion: 'svc.internal/v1alpha1', kind: 'Environment', plural: 'environments' },
      {
        metadata: { name: `${organizationId}.${projectId}.main`, namespace },
        ...{ spec: { organizationId, projectId, environmentId: 'main', kind: 'preview' } },
      },
    )
    assert.deepEqual(await own.remove(withClaim), { kept: '1 claims with data are in it' })
    assert.deepEqual(await own.remove(withEnvironment), { kept: '1 Environments are in it' })
    for (const project of [withClaim, withEnvironment])
      assert.equal((await find(project.namespace))?.metadata?.deletionTimestamp, undefined)
  })
})
