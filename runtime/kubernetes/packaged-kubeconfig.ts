/** Kubeconfigs that ask plugins and providers, or are several: read by the client's package. */
import type { KubeConfig } from '@kubernetes/client-node'
import { addressOf, type ClusterAccess, rereading, type SignIn, type TlsMaterial } from './sign-in.ts'

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

/** What a kubeconfig says, whatever it asks for: without a path, what kubectl would use. @throws Error as `clusterAccess` */
export const packagedKubeconfigAccess = async (kubeconfig: string | undefined): Promise<ClusterAccess> => {
  let config = await load(kubeconfig)
  const cluster = config.getCurrentCluster()
  if (cluster === null || config.getCurrentContext() === 'loaded-context')
    throw new Error('Cannot find a Kubernetes cluster: set KUBECONFIG, or run in a pod with a service account')
  if (cluster.proxyUrl !== undefined)
    throw new Error(`Cannot use the kubeconfig's cluster ${cluster.name}: proxy-url is not supported`)
  const read = async (afresh: boolean): Promise<SignIn> => {
    // A new KubeConfig forgets what files and plugins said. A plugin's answer has a time of its own, and may cost a second.
    const user = config.getCurrentUser()
    if (afresh || (user?.exec === undefined && user?.authProvider === undefined)) config = await load(kubeconfig)
    return signInOf(config)
  }
  return {
    ...addressOf(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    signIn: rereading(await signInOf(config), read),
  }
}
