/** Where a Kubernetes API server is and how to sign in to it, as kubeconfigs and pods have it. */
import type { KubeConfig } from '@kubernetes/client-node'

/** Material for TLS connections, as node:tls takes it. */
export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly passphrase?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** How to sign in now: credentials rotate, so it is asked for again and again. */
export interface SignIn {
  readonly tls: TlsMaterial
  readonly headers: Readonly<Record<string, string>>
}

export interface ClusterAccess {
  /** `https://host:port`. */
  readonly origin: string
  /** What stands before every path; usually ''. */
  readonly prefix: string
  /** The namespace of the context or of the pod, where there is one. */
  readonly namespace: string | undefined
  /** Reads files and runs plugins at most once a minute; `afresh` does so now. */
  signIn(afresh?: boolean): Promise<SignIn>
}

/** Tokens of pods and plugins change below us: client-go reads them again as often. */
const REREAD_MS = 60_000

/** The client's package takes about a second to load: only whoever speaks to a cluster pays for it. */
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

/**
 * Reads a kubeconfig; without a path, what kubectl would use (`KUBECONFIG`, `~/.kube/config`), else the pod's service account.
 * @throws Error when there is none, or it names no cluster
 */
export const clusterAccess = async (kubeconfig?: string): Promise<ClusterAccess> => {
  let config = await load(kubeconfig)
  const cluster = config.getCurrentCluster()
  if (cluster === null || config.getCurrentContext() === 'loaded-context')
    throw new Error('Cannot find a Kubernetes cluster: set KUBECONFIG, or run in a pod with a service account')
  if (cluster.proxyUrl !== undefined)
    throw new Error(`Cannot use the kubeconfig's cluster ${cluster.name}: proxy-url is not supported`)
  const { origin, pathname } = new URL(cluster.server)
  let current = await signInOf(config)
  let readAt = performance.now()
  const reading = new Map<boolean, Promise<SignIn>>()
  const read = async (afresh: boolean): Promise<SignIn> => {
    // A new KubeConfig forgets what files and plugins said. A plugin's answer has a time of its own, and may cost a second.
    const user = config.getCurrentUser()
    if (afresh || (user?.exec === undefined && user?.authProvider === undefined)) config = await load(kubeconfig)
    current = await signInOf(config)
    readAt = performance.now()
    return current
  }
  return {
    origin,
    prefix: pathname.replace(/\/+$/, ''),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    signIn: async (afresh = false) => {
      if (!afresh && performance.now() - readAt < REREAD_MS) return current
      const running = reading.get(afresh) ?? read(afresh).finally(() => reading.delete(afresh))
      reading.set(afresh, running)
      // What cannot be read this time may still be valid; the API server tells when it is not.
      return afresh ? running : running.catch(() => current)
    },
  }
}
