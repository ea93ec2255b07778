/** The API server as an account of ours reaches it: with a token of its own, so that its rights count and its name is in the audit log. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import { openKubernetesApi } from '../../runtime/kubernetes/open-kubernetes-api.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { newTemporaryFolder } from '../../testkit/test-folder.ts'
import { RELEASE_NAMESPACE } from './installation.ts'
import type { Release } from './release.ts'

/** Opens it for a service account of the platform; closed at the end of the run. */
export const openAsAccount = async ({ cluster, kubectl }: Release, account: string): Promise<KubernetesApi> => {
  const token = (await kubectl.must(['create', 'token', account, '--namespace', RELEASE_NAMESPACE])).trim()
  const administrator = new KubeConfig()
  administrator.loadFromFile(cluster.kubeconfig)
  const { server, caData, caFile } = administrator.getCurrentCluster()!
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': account },
    clusters: [
      { name: account, cluster: { server, 'certificate-authority-data': caData, 'certificate-authority': caFile } },
    ],
    users: [{ name: account, user: { token } }],
    contexts: [{ name: account, context: { cluster: account, user: account } }],
  }
  const kubeconfig = join(newTemporaryFolder(), 'kubeconfig')
  writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 })
  const { api } = await openKubernetesApi({ name: account, version: 'test', kubeconfig })
  atEnd(() => api.close())
  return api
}
