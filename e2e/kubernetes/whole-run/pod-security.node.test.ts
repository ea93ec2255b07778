/** Every pod that the platform and its environments had in the whole run suits restricted Pod Security. Runs after the scenarios. */
import assert from 'node:assert/strict'
import type { V1Pod } from '@kubernetes/client-node'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import { RELEASE_NAMESPACE } from '../installation.ts'
import { installedRelease, type Release } from '../release.ts'

describe('Pod Security, restricted', function () {
  this.timeout(120_000)
  let release: Release
  let strict: string
  before(async () => {
    release = await installedRelease()
    strict = await release.cluster.namespace('strict', { 'pod-security.kubernetes.io/enforce': 'restricted' })
  })

  /** What the cluster says to a pod like this one in a namespace where the rules are in force. */
  const verdict = async (spec: V1Pod['spec'], name: string): Promise<string> => {
    const { nodeName: _, serviceAccount: __, priority: ___, preemptionPolicy: ____, ...asked } = spec!
    const { priorityClassName: _____, ...plain } = { ...asked, serviceAccountName: 'default' }
    try {
      await release.cluster.api.call({
        method: 'POST',
        path: `/api/v1/namespaces/${strict}/pods`,
        query: { dryRun: 'All' },
        body: { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: plain },
      })
      return 'admitted'
    } catch (error) {
      if (isStoreError(error, 'Forbidden', 'Invalid')) return error.message
      throw error
    }
  }

  it('refuses a pod that does not suit it', async () => {
    const spec = { containers: [{ name: 'x', image: 'svc-postgres:17' }] }
    assert.match(await verdict(spec, 'bad'), /violates PodSecurity "restricted/)
  })

  it('admits every pod that there was', async () => {
    const { pods } = release.witness
    const places = new Set(pods.map(({ metadata }) => metadata?.namespace))
    assert.ok(places.has(RELEASE_NAMESPACE) && places.size > 3, [...places].join(', '))
    const verdicts = await Promise.all(
      pods.map(
        async ({ metadata, spec }) => [metadata?.name ?? '', await verdict(spec, metadata?.name ?? '')] as const,
      ),
    )
    console.log(`      ${verdicts.length} pods`)
    assert.deepEqual(
      verdicts.filter(([, said]) => said !== 'admitted'),
      [],
    )
  })

  it('is in force in the namespace of every project that we made', async () => {
    const labels = await release.kubectl.must([
      ...['get', 'namespaces', '--selector', 'svc.internal/project,app.kubernetes.io/managed-by=svc-apiserver'],
      ...[
        '--output',
        'jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.pod-security\\.kubernetes\\.io/enforce}{"\\n"}{end}',
      ],
    ])
    const made = labels.trim().split('\n')
    assert.ok(made.length > 1)
    for (const line of made) assert.match(line, / restricted$/)
  })
})
