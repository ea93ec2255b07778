import assert from 'node:assert/strict'
import { credentialSecrets } from '../../../crds/credential-secrets.ts'
import { ANNOTATIONS, API_VERSION, LABELS } from '../../../crds/metadata.ts'
import { KubernetesCredentials } from '../../../runtime/kubernetes/kubernetes-credentials.ts'
import { silentLog } from '../../../runtime/log/log.ts'
import { apiCluster } from '../../../testkit/kubernetes/cluster.ts'
import { counting } from '../../../testkit/kubernetes/kubernetes-host.ts'
import { TEST_CREDENTIALS, TEST_SPEC } from '../../../testkit/local-host.ts'
import type { InstanceRef } from '../host.ts'
import { DEFAULT_HOST_SETTINGS } from './host-settings.ts'
import { openKubernetesHost } from './kubernetes-host.ts'

describe('an operator that starts', function () {
  this.timeout(60_000)

  it('looks at every object of a project and of an instance, and applies none that is as it should be', async () => {
    const cluster = await apiCluster()
    await cluster.installKinds()
    const path = { organizationId: 'acme', projectId: 'app', environmentId: 'main' }
    const labels = { [LABELS.organization]: 'acme', [LABELS.project]: 'app' }
    const namespace = await cluster.namespace('quiet', labels)
    const operatorNamespace = await cluster.namespace('quiet-system')
    const key = { namespace, name: 'acme.app.main' }
    const { metadata } = await cluster.api.call<{ metadata: { uid: string } }>({
      method: 'POST',
      path: `/apis/${API_VERSION}/namespaces/${namespace}/environments`,
      body: {
        ...{ apiVersion: API_VERSION, kind: 'Environment' },
        metadata: { name: key.name, annotations: { [ANNOTATIONS.paused]: 'true' } },
        spec: { ...path, kind: 'preview' },
      },
    })
    const ref: InstanceRef = { key, uid: metadata.uid, path }

    const changesOfAStart = async (): Promise<readonly string[]> => {
      const { objects, calls } = counting(cluster.objects)
      const settings = { ...DEFAULT_HOST_SETTINGS, operatorNamespace, managedBy: namespace }
      const host = openKubernetesHost({ api: cluster.api, objects, settings, log: silentLog })
      await host.watch()
      await host.prepare(namespace, { afresh: true })
      await host.start(ref, TEST_SPEC)
      await new KubernetesCredentials(objects, credentialSecrets).write({ ...key, uid: ref.uid }, TEST_CREDENTIALS)
      await host.stopAll()
      return calls
    }
    const made = [
      ...['RoleBinding', 'RoleBinding', 'ServiceAccount', 'NetworkPolicy'],
      ...['PersistentVolumeClaim', 'Service', 'Secret', 'StatefulSet'],
    ].map(kind => `apply ${kind}`)
    // The authority, and the passwords twice: what must not be overwritten is not applied.
    const created = ['create Secret', 'create Secret', 'create Secret']
    assert.deepEqual([...(await changesOfAStart())].sort(), [...made, ...created].sort())
    assert.deepEqual(await changesOfAStart(), [])
  })
})
