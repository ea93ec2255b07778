import assert from 'node:assert/strict'
import { Registry } from 'prom-client'
import { stringify } from 'yaml'
import { ANNOTATIONS, LABELS, OPERATOR } from '../../crds/metadata.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { namespaces, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { operatorConfig } from '../config/config.ts'
import { claims } from '../host/kubernetes/object-types.ts'
import { type ClusterOperator, startOnCluster } from '../start-on-cluster.ts'

describe('the protection of namespaces', function () {
  this.timeout(120_000)
  let cluster: TestCluster
  let operator: ClusterOperator
  let kubectl: ReturnType<typeof kubectlOn>
  let system: string

  const start = () =>
    startOnCluster({
      config: operatorConfig({ SERVICE_OPERATOR_NAMESPACE: system }, 'kubernetes'),
      environments: {},
      identity: 'protection-test',
      log: silentLog,
      registry: new Registry(),
      kubeconfig: cluster.kubeconfig,
    })
  before(async function () {
    // It leads over everything on the cluster: with the authority that other operators of the run find then.
    ;({ cluster, namespace: system } = await fakedCluster(this))
    kubectl = kubectlOn(cluster.kubeconfig)
    operator = await start()
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was started
  after(() => operator?.stop())

  const project = () => cluster.namespace('pack', { [LABELS.organization]: 'acme', [LABELS.project]: 'shop' })
  const labelOf = async (name: string) =>
    (await cluster.objects.get(namespaces, { namespace: '', name }))?.metadata?.labels?.[LABELS.protected]
  const becomes = async (name: string, value: string | undefined) => {
    for (const end = Date.now() + 20_000; (await labelOf(name)) !== value; )
      if (Date.now() > end) assert.equal(await labelOf(name), value)
      else await new Promise(resolve => setTimeout(resolve, 50))
  }
  const apply = (namespace: string, id: string, deletionProtection: boolean) =>
    kubectl.must(
      ['apply', '-f', '-'],
      stringify({
        apiVersion: 'svc.internal/v1alpha1',
        kind: 'Environment',
        metadata: { name: `acme.shop.${id}`, namespace },
        spec: { organizationId: 'acme', projectId: 'shop', environmentId: id, kind: 'staging', deletionProtection },
      }),
    )

  it('follows the environments in it: from the first that is protected to the last', async () => {
    const [namespace, other] = [await project(), await project()]
    await apply(namespace, 'first', true)
    await becomes(namespace, 'true')
    await apply(namespace, 'second', true)
    await apply(namespace, 'first', false)
    await apply(other, 'open', false)
    // Once the operator has dealt with a later change it has dealt with those.
    await apply(other, 'closed', true)
    await becomes(other, 'true')
    assert.equal(await labelOf(namespace), 'true')
    await apply(namespace, 'second', false)
    await becomes(namespace, undefined)
  })

  it('is put back when somebody takes it away, and set at the next start', async () => {
    const namespace = await project()
    await apply(namespace, 'kept', true)
    await becomes(namespace, 'true')
    await kubectl.must(['label', 'namespace', namespace, `${LABELS.protected}-`])
    await becomes(namespace, 'true')
    await operator.stop()
    await kubectl.must(['label', 'namespace', namespace, `${LABELS.protected}-`])
    operator = await start()
    await becomes(namespace, 'true')
  })

  it('follows retained data too, until somebody deletes it', async () => {
    const namespace = await project()
    const key = { namespace, name: 'main-1-0123abcd' }
    const claim = await cluster.objects.create(claims, {
      metadata: {
        ...key,
        labels: { [LABELS.managedBy]: OPERATOR, [LABELS.retained]: 'true' },
        annotations: { [ANNOTATIONS.retainedUntil]: '2030-01-01T00:00:00Z' },
      },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await becomes(namespace, 'true')
    await cluster.objects.delete(claims, key, { uid: claim.metadata!.uid! })
    await becomes(namespace, undefined)
  })

  it('leaves namespaces alone that are of no project', async () => {
    const namespace = await cluster.namespace('pack')
    await apply(namespace, 'stray', true)
    const later = await project()
    await apply(later, 'kept', true)
    await becomes(later, 'true')
    assert.equal(await labelOf(namespace), undefined)
  })
})
