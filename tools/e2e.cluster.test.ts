import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { LABELS } from '../crds/metadata.ts'

import { apiCluster, namespaces } from '../testkit/kubernetes/cluster.ts'

const SCRIPT = join(import.meta.dirname, 'e2e.sh')

describe('make e2e', () => {
  it('refuses a cluster that is in use: it would delete what is there', async () => {
    const cluster = await apiCluster()
    const namespace = await cluster.namespace('in-use', { [LABELS.organization]: 'acme', [LABELS.project]: 'shop' })
    const { SERVICE_TEST_API_KUBECONFIG: _other, E2E_USED_CLUSTER: _said, ...env } = process.env
    const run = spawnSync(SCRIPT, ['none.test.ts'], {
      env: { ...env, KUBECONFIG: cluster.kubeconfig, E2E_LOAD_IMAGE: '' },
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(run.status, 1)
    assert.match(run.stderr, /deletes every environment of its cluster/)
    assert.match(run.stderr, /E2E_USED_CLUSTER=1/)
    const { items } = await cluster.objects.list(namespaces)
    assert.ok(items.some(({ metadata }) => metadata?.name === namespace && metadata.deletionTimestamp === undefined))
  }).timeout(70_000)
})
