/** The manifests for kustomize on a real cluster, by the commands of their README as they are printed there. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installationOn } from '../../e2e/kubernetes/installation.ts'
import { nodeCluster } from '../../testkit/kubernetes/cluster.ts'
import { kubectlOn, succeeded } from '../../testkit/kubernetes/kubectl.ts'

const ROOT = join(import.meta.dirname, '../..')
const README = readFileSync(join(ROOT, 'manifests/README.md'), 'utf8')

describe('the manifests on a node', function () {
  this.timeout(420_000)
  let folder: string
  let kubeconfig: string
  let kubectl: ReturnType<typeof kubectlOn>
  let uninstall: () => Promise<void>
  const run = (script: string): Promise<string> =>
    succeeded('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env: { KUBECONFIG: kubeconfig } })

  before(async () => {
    const cluster = await nodeCluster()
    ;({ kubeconfig } = cluster)
    kubectl = kubectlOn(kubeconfig)
    const installation = installationOn(cluster, 'e2e/kubernetes/values.yaml')
    uninstall = () => installation.uninstall()
    assert.doesNotMatch(
      await installation.helm('list', '--all-namespaces'),
      /\bsvc-(platform|crds)-/,
      'the charts are installed on this cluster already',
    )
    // What earlier runs left is theirs, and applied by them: this begins with nothing, as a newcomer does.
    const policies = join(ROOT, 'manifests/crds/admission.yaml')
    await kubectl.must(['delete', '--ignore-not-found', '-f', policies])
    const kinds = ['environments.svc.internal', 'deletionrecords.svc.internal']
    await kubectl.run(['annotate', 'crd', ...kinds, 'svc.internal/allow-deletion=true'])
    await kubectl.must(['delete', 'crd', ...kinds, '--ignore-not-found', '--timeout=60s'])
    folder = await mkdtemp(join(tmpdir(), 'svc-manifests-'))
    await cp(join(ROOT, 'manifests'), join(folder, 'manifests'), {
      recursive: true,
      filter: path => !path.endsWith('/secrets'),
    })
  })
  after(async () => {
    await uninstall()
    // Cluster-wide, but for the definitions, which others need.
    await kubectl.run(['delete', 'clusterroles,clusterrolebindings', '--selector', 'app.kubernetes.io/part-of=svc'])
    await kubectl.run(['delete', '--ignore-not-found', '-f', join(folder, 'manifests/crds/admission.yaml')])
    await rm(folder, { recursive: true, force: true })
  })

  it('of overlay dev run by themselves, and the samples become ready', async () => {
    const [commands] = [...README.matchAll(/^```\n([\s\S]*?)^```$/gm)].map(match => match[1]!)
    assert.match(commands ?? '', /overlays\/dev[\s\S]*samples[\s\S]*wait/)
    await run(commands ?? '')
    const phases = ['get', 'environments', '--namespace', 'shop', '--output', 'jsonpath={.items[*].status.phase}']
    assert.equal(await kubectl.must(phases), 'ready ready ready')
    for (const deployment of ['svc-apiserver', 'svc-operator'])
      await kubectl.must(['-n', 'svc-system', 'rollout', 'status', `deployment/${deployment}`, '--timeout=180s'])
    const inApi = ['-n', 'svc-system', 'exec', 'deployment/svc-apiserver', '-c', 'apiserver', '--']
    assert.match(await kubectl.must([...inApi, 'node', 'apiserver/new-user.ts', '--operator', 'you@example.com']), /\S/)
  })

  it('change nothing when they are applied again', async () => {
    const pods = ['-n', 'svc-system', 'get', 'pods', '--output', 'jsonpath={.items[*].metadata.uid}']
    const before = await kubectl.must(pods)
    await run('manifests/overlays/dev/make-secrets.sh; kubectl apply --server-side -k manifests/overlays/dev')
    assert.equal(await kubectl.must(pods), before)
  })
})
