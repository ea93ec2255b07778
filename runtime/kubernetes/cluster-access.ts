/** Where a Kubernetes API server is and how to sign in to it, as kubeconfigs and pods have it. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { packagedKubeconfigAccess } from './packaged-kubeconfig.ts'
import { plainKubeconfigAccess } from './plain-kubeconfig.ts'
import { podAccess } from './pod-access.ts'
import type { ClusterAccess } from './sign-in.ts'

/** The one file that is read, where there is no more to it. */
const onlyFile = (): string | undefined => {
  // eslint-disable-next-line no-restricted-syntax -- kubectl's variable, no setting of ours
  const paths = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter(Boolean)
  const usual = join(homedir(), '.kube', 'config')
  return paths.length > 0 ? (paths.length === 1 ? paths[0] : undefined) : existsSync(usual) ? usual : undefined
}

/**
 * Reads a kubeconfig; without a path, what kubectl would use (`KUBECONFIG`, `~/.kube/config`), else the pod's service account.
 * @throws Error when there is none, or it names no cluster
 */
export const clusterAccess = async (kubeconfig?: string): Promise<ClusterAccess> => {
  const inPod = kubeconfig === undefined ? await podAccess() : undefined
  if (inPod !== undefined) return inPod
  const file = kubeconfig ?? onlyFile()
  return (
    (file === undefined ? undefined : await plainKubeconfigAccess(file)) ?? (await packagedKubeconfigAccess(kubeconfig))
  )
}
