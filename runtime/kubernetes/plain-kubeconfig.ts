/**
 * Kubeconfigs that hold what they need, as certificates, keys and tokens, in themselves or in files beside them. Those that ask
 * plugins, or use what else there is, are the client's package's to read, which takes 80 MB and a second to load.
 * Source: Kubernetes' reference of its configuration, kubeconfig v1.
 */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { addressOf, type ClusterAccess, rereading, type SignIn, type TlsMaterial } from './sign-in.ts'

const cluster = z.strictObject({
  server: z.url({ protocol: /^https$/ }),
  'certificate-authority': z.string().min(1).optional(),
  'certificate-authority-data': z.string().min(1).optional(),
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': z.string().min(1).optional(),
  extensions: z.unknown().optional(),
})
const user = z.strictObject({
  'client-certificate': z.string().min(1).optional(),
  'client-certificate-data': z.string().min(1).optional(),
  'client-key': z.string().min(1).optional(),
  'client-key-data': z.string().min(1).optional(),
  token: z.string().min(1).optional(),
  extensions: z.unknown().optional(),
})
const context = z.object({ cluster: z.string(), user: z.string(), namespace: z.string().optional() })
const named = z.array(z.looseObject({ name: z.string() }))
const kubeconfig = z.object({
  'current-context': z.string(),
  clusters: named,
  contexts: named,
  users: named,
})

type PlainCluster = z.infer<typeof cluster>
interface Plain {
  readonly cluster: PlainCluster
  readonly user: z.infer<typeof user>
  readonly namespace: string | undefined
}

const plainIn = (text: string): Plain | undefined => {
  const { data } = kubeconfig.safeParse(parse(text))
  if (data === undefined) return undefined
  const entry = (list: z.infer<typeof named>, key: string, name: string | undefined): unknown =>
    list.find(item => item.name === name)?.[key]
  const chosen = context.safeParse(entry(data.contexts, 'context', data['current-context'])).data
  const server = cluster.safeParse(entry(data.clusters, 'cluster', chosen?.cluster)).data
  const account = user.safeParse(entry(data.users, 'user', chosen?.user)).data
  if (chosen === undefined || server === undefined || account === undefined) return undefined
  return { cluster: server, user: account, namespace: chosen.namespace }
}

const signInOf = async (path: string, { cluster: server, user: account }: Plain): Promise<SignIn> => {
  // As kubectl and the client's package have it, a file goes before data.
  const material = async (file: string | undefined, data: string | undefined): Promise<Buffer | undefined> =>
    file === undefined
      ? data === undefined
        ? undefined
        : Buffer.from(data, 'base64')
      : readFile(resolve(dirname(path), file))
  const [ca, cert, key] = await Promise.all([
    material(server['certificate-authority'], server['certificate-authority-data']),
    material(account['client-certificate'], account['client-certificate-data']),
    material(account['client-key'], account['client-key-data']),
  ])
  const servername = server['tls-server-name']
  const tls: TlsMaterial = {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(servername && { servername }),
    ...(server['insecure-skip-tls-verify'] === true && { rejectUnauthorized: false }),
  }
  return { tls, headers: account.token === undefined ? {} : { authorization: `Bearer ${account.token.trim()}` } }
}

/** What a plain kubeconfig says; undefined where it is not one. @throws Error when a file is missing */
export const plainKubeconfigAccess = async (path: string): Promise<ClusterAccess | undefined> => {
  const read = async (): Promise<Plain | undefined> => plainIn(await readFile(path, 'utf8'))
  const plain = await read()
  if (plain === undefined) return undefined
  return {
    ...addressOf(plain.cluster.server),
    namespace: plain.namespace,
    // One that is not plain any more, or half written, is read at the next start.
    signIn: rereading(await signInOf(path, plain), async () => signInOf(path, (await read()) ?? plain)),
  }
}
