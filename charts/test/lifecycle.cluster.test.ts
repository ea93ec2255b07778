import assert from 'node:assert/strict'
import { stringify } from 'yaml'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Helm, helms } from '../../testkit/kubernetes/helm.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { BUILTIN_LOGIN, chartPath } from './render.ts'

const SECRETS = ['svc-master-key', 'svc-database', 'svc-database-tls']
const VOLUME = 'data-svc-database-0'

/** Kinds that tests installed without Helm become Helm's; where it applies on the server's side, the fields too. */
const adopting = ({ major }: Helm): string[] => ['--take-ownership', ...(major >= 4 ? ['--force-conflicts'] : [])]

describe('a release of the charts', function () {
  this.timeout(240_000)
  let cluster: TestCluster
  let all: readonly Helm[]
  let kubectl: ReturnType<typeof kubectlOn>
  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
    kubectl = kubectlOn(cluster.kubeconfig)
    all = await helms()
    const releases = await all[0]!.must(['list', '--all-namespaces', '--kubeconfig', cluster.kubeconfig])
    assert.doesNotMatch(releases, /\bsvc-(platform|crds)-/, 'the charts are installed on this cluster already')
  })

  /** A release of both charts in a namespace of its own, with one environment that it shall not touch. */
  const released = async (helm: Helm) => {
    const namespace = await cluster.namespace('pack')
    const project = await cluster.namespace('pack', {
      'svc.internal/organization': 'acme',
      'svc.internal/project': 'shop',
    })
    const on = ['--kubeconfig', cluster.kubeconfig, '--namespace', namespace]
    const run = (...args: string[]) => helm.must([...args, ...on])
    const environment = {
      apiVersion: 'svc.internal/v1alpha1',
      kind: 'Environment',
      metadata: { name: 'acme.shop.main', namespace: project },
      spec: { organizationId: 'acme', projectId: 'shop', environmentId: 'main', kind: 'staging' },
    }
    await run('install', 'svc-crds', chartPath('svc-crds'), ...adopting(helm))
    await run('install', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN)
    await kubectl.must(['apply', '-f', '-'], stringify(environment))
    const secret = async (name: string): Promise<unknown> => {
      const text = await kubectl.must(['-n', namespace, 'get', 'secret', name, '-o', 'json'])
      return (JSON.parse(text) as { readonly data: unknown }).data
    }
    const secrets = () => Promise.all(SECRETS.map(secret))
    const uidOf = (where: string, what: string) =>
      kubectl.must(['-n', where, 'get', ...what.split(' '), '-o', 'jsonpath={.metadata.uid}'])
    return { namespace, project, run, secrets, uidOf }
  }

  it('keeps passwords, the master key, the volume and every environment, whatever is done with it', async () => {
    for (const helm of all) {
      const { namespace, project, run, secrets, uidOf } = await released(helm)
      try {
        const before = await secrets()
        const environment = await uidOf(project, 'environment acme.shop.main')
        for (const end = Date.now() + 30_000; ; await new Promise(resolve => setTimeout(resolve, 200)))
          if ((await kubectl.run(['-n', namespace, 'get', 'persistentvolumeclaim', VOLUME])).code === 0) break
          else assert.ok(Date.now() < end, 'the volume was never claimed')
        const volume = await uidOf(namespace, `persistentvolumeclaim ${VOLUME}`)
        const asBefore = async (when: string) => {
          assert.deepEqual(await secrets(), before, `Secrets changed by ${when} of Helm ${helm.version}`)
          assert.equal(await uidOf(namespace, `persistentvolumeclaim ${VOLUME}`), volume, when)
          assert.equal(await uidOf(project, 'environment acme.shop.main'), environment, when)
        }
        await run('upgrade', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN, '--set', 'apiServer.replicas=2')
        await asBefore('an upgrade')
        await run('rollback', 'svc', '1')
        await asBefore('a rollback')
        await run('uninstall', 'svc')
        await asBefore('an uninstall')
        const left = await kubectl.must(['-n', namespace, 'get', 'deployments,statefulsets', '-o', 'name'])
        assert.equal(left, '')
        await run('install', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN)
        await asBefore('another install')
        await run('uninstall', 'svc-crds')
        await asBefore('an uninstall of the definitions')
      } finally {
        for (const release of ['svc', 'svc-crds']) await run('uninstall', release, '--ignore-not-found')
      }
    }
  })

  it('is refused without the definitions’ chart, or with one that is about another namespace', async () => {
    for (const helm of all) {
      const namespace = await cluster.namespace('pack')
      const on = ['--kubeconfig', cluster.kubeconfig, '--namespace', namespace]
      const { code, stderr } = await helm.run(['install', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN, ...on])
      assert.notEqual(code, 0)
      assert.match(stderr, /policies of the chart svc-crds are not there, or are about another namespace/)
    }
  })
})
