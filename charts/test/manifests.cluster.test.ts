import assert from 'node:assert/strict'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Helm, helms } from '../../testkit/kubernetes/helm.ts'
import { kubectlOn, succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { MANIFEST_VALUES, manifestFiles, platformObjects } from '../../tools/render-manifests.ts'
import { identity, objectsIn, type Rendered } from './render.ts'

const ROOT = join(import.meta.dirname, '../..')

const byIdentity = (objects: readonly Rendered[]): Readonly<Record<string, Rendered>> =>
  Object.fromEntries(objects.map(object => [identity(object), object]))

describe('the manifests for kustomize', function () {
  this.timeout(120_000)
  let cluster: TestCluster
  let kubectl: ReturnType<typeof kubectlOn>
  let helm: Helm
  /** A copy, in which the dev overlay has Secrets. */
  let manifests: string
  const kustomize = async (folder: string): Promise<readonly Rendered[]> =>
    objectsIn(await kubectl.must(['kustomize', join(manifests, folder)]))

  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
    kubectl = kubectlOn(cluster.kubeconfig)
    helm = (await helms())[0]!
    manifests = join(await mkdtemp(join(tmpdir(), 'svc-manifests-')), 'manifests')
    await cp(join(ROOT, 'manifests'), manifests, { recursive: true, filter: path => !path.endsWith('/secrets') })
    await succeeded(join(manifests, 'overlays/dev/make-secrets.sh'), [])
  })
  after(() => rm(join(manifests, '..'), { recursive: true, force: true }))

  it('take from the chart what it makes now: otherwise run make manifests', async () => {
    for (const [path, fresh] of Object.entries(await manifestFiles(helm)))
      assert.equal(await readFile(join(ROOT, path), 'utf8'), fresh, path)
  })

  for (const [overlay, folder] of [
    ['base', 'base'],
    ['dev', 'overlays/dev'],
    ['ha', 'overlays/ha'],
  ] as const)
    it(`${overlay} comes out as the chart does with the same meaning, and is taken by a real API server`, async () => {
      const objects = await kustomize(folder)
      const besideChart = ['CustomResourceDefinition', 'Namespace', 'Secret']
      const ours = objects.filter(
        ({ kind }) => !besideChart.includes(kind) && !kind.startsWith('ValidatingAdmissionPolicy'),
      )
      assert.deepEqual(byIdentity(ours), byIdentity(await platformObjects(helm, MANIFEST_VALUES[overlay])))
      // In a namespace that is there, for a dry run makes none.
      const namespace = await cluster.namespace('pack')
      const moved = objects
        .filter(({ kind }) => kind !== 'Namespace')
        .map(object => stringify(object).replaceAll('svc-system', namespace))
      await kubectl.must(
        ['apply', '--server-side', '--dry-run=server', '--field-manager=dry', '--force-conflicts', '-f', '-'],
        moved.join('---\n'),
      )
    })

  it('dev has a password of its own for each role, and a certificate of the database’s name', async () => {
    const made = async () => byIdentity((await kustomize('overlays/dev')).filter(({ kind }) => kind === 'Secret'))
    const secrets = await made()
    const text = (secret: string, key: string): string => {
      const { data } = secrets[`Secret/svc-system/${secret}`] as unknown as { data: Record<string, string> }
      return Buffer.from(data[key]!, 'base64').toString()
    }
    assert.match(
      text('svc-database', 'url'),
      /^postgres:\/\/svc_api:[0-9a-f]{40}@svc-database\.svc-system\.svc:5432\/svc\?/,
    )
    assert.notEqual(text('svc-database', 'password'), text('svc-database', 'owner-password'))
    assert.ok(text('svc-database', 'owner-url').includes(`svc_owner:${text('svc-database', 'owner-password')}@`))
    assert.equal(Buffer.from(text('svc-master-key', 'master-key'), 'base64').length, 32)
    await succeeded('openssl', [
      ...['verify', '-CAfile', join(manifests, 'overlays/dev/secrets/ca.crt')],
      ...['-verify_hostname', 'svc-database.svc-system.svc', join(manifests, 'overlays/dev/secrets/tls.crt')],
    ])
    await succeeded(join(manifests, 'overlays/dev/make-secrets.sh'), [])
    assert.deepEqual(await made(), secrets, 'running it again changed something')
  })

  it('samples are environments that a real API server takes, in a namespace of their project', async () => {
    const namespace = await cluster.namespace('pack')
    const environments = (await kustomize('samples')).filter(({ kind }) => kind === 'Environment')
    assert.deepEqual(
      environments.map(({ metadata }) => metadata.name),
      ['acme.shop.preview', 'acme.shop.production', 'acme.shop.staging'],
    )
    const moved = environments.map(object => stringify({ ...object, metadata: { ...object.metadata, namespace } }))
    await kubectl.must(['apply', '--dry-run=server', '-f', '-'], moved.join('---\n'))
  })
})
