/**
 * What a pod is given to reach its cluster's API server: two variables and the files of its service account. Read here and not by the
 * client's package, which takes 80 MB and a second to load.
 */
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type ClusterAccess, rereading, type SignIn } from './sign-in.ts'

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface PodPlace {
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Where kubelet mounts the service account. */
  readonly account?: string
  readonly home?: string
}

/** Undefined outside a pod, in one without a service account, and where a kubeconfig goes before it, as it does for kubectl. */
export const podAccess = async ({
  // eslint-disable-next-line no-restricted-syntax -- kubelet's and kubectl's variables, no settings of ours
  environment = process.env,
  account = ACCOUNT,
  home = homedir(),
}: PodPlace = {}): Promise<ClusterAccess | undefined> => {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, KUBECONFIG } = environment
  if (!host || !port || KUBECONFIG || existsSync(join(home, '.kube', 'config'))) return undefined
  if (!existsSync(join(account, 'token'))) return undefined
  const fileOf = async (name: string): Promise<string> => readFile(join(account, name), 'utf8')
  const read = async (): Promise<SignIn> => {
    const [ca, token] = await Promise.all([fileOf('ca.crt'), fileOf('token')])
    return { tls: { ca }, headers: { authorization: `Bearer ${token.trim()}` } }
  }
  const namespace = join(account, 'namespace')
  return {
    origin: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    prefix: '',
    namespace: existsSync(namespace) ? readFileSync(namespace, 'utf8').trim() : undefined,
    signIn: rereading(await read(), read),
  }
}
