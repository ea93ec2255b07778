import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { V1PodSpec } from '@kubernetes/client-node'
import { stringify } from 'yaml'
import { admissionPolicies } from '../../crds/admission-policies.ts'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Helm, helms } from '../../testkit/kubernetes/helm.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { chartPath, identity, objectsIn, type Rendered, rendered } from './render.ts'
import { VALUES_MATRIX } from './values-matrix.ts'

interface Workload extends Rendered {
  readonly spec: { readonly template: { readonly spec: V1PodSpec } }
}

/** The specs of all pods in what was rendered. */
const podsIn = (objects: readonly Rendered[]): readonly [string, V1PodSpec][] =>
  objects.flatMap(object => {
    if (object.kind === 'Pod') return [[identity(object), (object as unknown as { spec: V1PodSpec }).spec]]
    if (!['Deployment', 'StatefulSet'].includes(object.kind)) return []
    return [[identity(object), (object as Workload).spec.template.spec]]
  })

/** Kinds of the Prometheus operator, which test clusters do not serve. */
const FOREIGN = ['ServiceMonitor', 'PrometheusRule']

/** A dry run makes nothing, so that what refers to something made just before is refused: that reference is taken out. */
const asIfMadeInTurn = (object: Rendered, namespace: string): Rendered => {
  if (object.metadata.labels?.['app.kubernetes.io/component'] !== 'test') return object
  if (object.kind === 'Pod') {
    const { priorityClassName: _, ...spec } = (object as unknown as { spec: V1PodSpec }).spec
    return { ...object, spec } as Rendered
  }
  return object.kind.startsWith('Role') ? { ...object, metadata: { ...object.metadata, namespace } } : object
}

describe('the charts', function () {
  this.timeout(180_000)
  let cluster: TestCluster
  let all: readonly Helm[]
  /** A namespace where what helm test makes beforehand is there already, so that a dry run may refer to it. */
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    all = await helms()
    namespace = await cluster.namespace('pack')
    await cluster.installKinds()
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'svc-helm-test', namespace } }
    await kubectlOn(cluster.kubeconfig).must(['apply', '-f', '-'], stringify(account))
  })

  for (const chart of ['svc-crds', 'svc-platform'])
    it(`${chart} passes helm lint --strict`, async () => {
      for (const helm of all) await helm.must(['lint', '--strict', chartPath(chart)])
    })

  it('svc-crds has the generated definitions and policies, and keeps the definitions when it is uninstalled', async () => {
    const definitions = ['deletionrecords', 'environments'].flatMap(file =>
      objectsIn(readFileSync(join(import.meta.dirname, `../../crds/generated/${file}.yaml`), 'utf8')),
    )
    for (const helm of all) {
      const objects = await rendered(helm, 'svc-crds', 'svc-system')
      const crds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
      assert.deepEqual(
        crds.map(({ metadata: { annotations: _, ...metadata }, ...rest }) => ({ ...rest, metadata })),
        definitions,
      )
      for (const { metadata } of crds) assert.equal(metadata.annotations?.['helm.sh/resource-policy'], 'keep')
      const sorted = (list: readonly object[]) =>
        (list as readonly Rendered[]).toSorted((a, b) => (identity(a) < identity(b) ? -1 : 1))
      assert.deepEqual(
        sorted(objects.filter(({ kind }) => kind !== 'CustomResourceDefinition')),
        sorted(admissionPolicies('svc-system')),
      )
      const elsewhere = await rendered(helm, 'svc-crds', 'a', ['--set', 'systemNamespace=b'])
      assert.match(stringify(elsewhere), /system:serviceaccount:b:svc-operator/)
    }
  })

  it('take the values by which scenarios and benchmarks install them, which say all that an installation has to', async () => {
    for (const file of ['e2e/kubernetes/values.yaml', 'bench/node/values.yaml'])
      for (const helm of all)
        await helm.must([
          'template',
          'svc',
          chartPath('svc-platform'),
          '--values',
          join(import.meta.dirname, '../..', file),
        ])
  })

  for (const [what, args] of Object.entries(VALUES_MATRIX))
    describe(`svc-platform with ${what}`, () => {
      it('is taken by a real API server, every object of it', async () => {
        for (const helm of all) {
          const objects = (await rendered(helm, 'svc-platform', namespace, args))
            .filter(({ kind }) => !FOREIGN.includes(kind))
            .map(object => asIfMadeInTurn(object, namespace))
          const { code, stdout, stderr } = await kubectlOn(cluster.kubeconfig).run(
            ['apply', '--server-side', '--dry-run=server', '--field-manager=dry', '--force-conflicts', '-f', '-'],
            objects.map(object => stringify(object)).join('---\n'),
          )
          assert.equal(code, 0, `Helm ${helm.version}: ${stderr}`)
          assert.equal(stdout.trim().split('\n').length, objects.length)
          // What the API server would drop or what breaks Pod Security it warns of.
          assert.equal(stderr, '', `Helm ${helm.version}`)
        }
      })

      it('names images, never latest, and runs every container under restricted Pod Security with a read-only root', async () => {
        const pods = podsIn(await rendered(all[0]!, 'svc-platform', namespace, args))
        assert.ok(pods.length >= 3)
        for (const [name, pod] of pods) {
          assert.equal(pod.securityContext?.runAsNonRoot, true, name)
          assert.equal(pod.securityContext.seccompProfile?.type, 'RuntimeDefault', name)
          for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
            const where = `${name} ${container.name}`
            assert.match(container.image ?? '', /(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/, where)
            assert.deepEqual(
              container.securityContext,
              { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
              where,
            )
            assert.ok(container.resources?.limits?.['memory'], `${where} has no limit of memory`)
          }
        }
      })
    })
})
