/** Where a Kubernetes API server is and how to sign in to it, as kubeconfigs and pods have it. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { KubeConfig } from '@kubernetes/client-node'
import { plainKubeconfigAccess } from './plain-kubeconfig.ts'
import { podAccess } from './pod-access.ts'
import { type ClusterAccess, rereading, type SignIn, type TlsMaterial } from './sign-in.ts'

/** The client's package takes about a second and 80 MB to load: only whose kubeconfig asks for more than files pays for it. */
const load = async (kubeconfig: string | undefined): Promise<KubeConfig> => {
  const { KubeConfig: Config } = await import('@kubernetes/client-node')
  const config = new Config()
  if (kubeconfig === undefined) config.loadFromDefault()
  else config.loadFromFile(kubeconfig)
  return config
}

const signInOf = async (config: KubeConfig): Promise<SignIn> => {
  const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = {}
  await config.applyToHTTPSOptions(options)
  const { ca, cert, key, passphrase, servername, rejectUnauthorized, headers, auth } = options as TlsMaterial & {
    headers?: Record<string, unknown>
    auth?: string
  }
  return {
    // Without undefined members, so that two can be compared.
    tls: {
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(passphrase && { passphrase }),
      ...(servername && { servername }),
      ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    },
    headers: {
      ...(auth && { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }),
      ...Object.fromEntries(
        Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value).trim()]),
      ),
    },
  }
}

/** The one file that is read, where there is no more to it. */
const onlyFile = (): string | undefined => {
  // eslint-disable-next-line no-restricted-syntax -- kubectl's variable, no setting of ours
  const paths = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter(Boolean)
  const usual = join(homedir(), '.kube', 'config')
  return paths.length > 0 ? (paths.length === 1 ? paths[0] : undefined) : existsSync(usual) ? usual : undefined
}

/** What a kubeconfig says, whatever it asks for: read by the client's package. @throws Error as `clusterAccess` */
export const anyKubeconfigAccess = async (kubeconfig: string | undefined): Promise<ClusterAccess> => {
  let config = await load(kubeconfig)
  const cluster = config.getCurrentCluster()
  if (cluster === null || config.getCurrentContext() === 'loaded-context')
    throw new Error('Cannot find a Kubernetes cluster: set KUBECONFIG, or run in a pod with a service account')
  if (cluster.proxyUrl !== undefined)
    throw new Error(`Cannot use the kubeconfig's cluster ${cluster.name}: proxy-url is not supported`)
  const { origin, pathname } = new URL(cluster.server)
  const read = async (afresh: boolean): Promise<SignIn> => {
    // A new KubeConfig forgets what files and plugins said. A plugin's answer has a time of its own, and may cost a second.
    const user = config.getCurrentUser()
    if (afresh || (user?.exec === undefined && user?.authProvider === undefined)) config = await load(kubeconfig)
    return signInOf(config)
  }
  return {
    origin,
    prefix: pathname.replace(/\/+$/, ''),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    signIn: rereading(await signInOf(config), read),
  }
}

/**
 * Reads a kubeconfig; without a path, what kubectl would use (`KUBECONFIG`, `~/.kube/config`), else the pod's service account.
 * @throws Error when there is none, or it names no cluster
 */
export const clusterAccess = async (kubeconfig?: string): Promise<ClusterAccess> => {
  const inPod = kubeconfig === undefined ? await podAccess() : undefined
  if (inPod !== undefined) return inPod
  const file = kubeconfig ?? onlyFile()
  return (file === undefined ? undefined : await plainKubeconfigAccess(file)) ?? (await anyKubeconfigAccess(kubeconfig))
}
