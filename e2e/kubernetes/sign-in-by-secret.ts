/** What a program does that has nothing but an environment's `app` Secret: signs in by its `uri`, trusting the authority in it. */
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import { secrets, services } from '../../operator/host/kubernetes/object-types.ts'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type OpenSql, openSession } from '../../testkit/open-sql.ts'
import type { FakedEnvironment } from './faked-environment.ts'

/** What the `app` Secret of the environment with this uid says now. @throws Error when there is none */
export const readAppSecret = async (
  objects: Pick<KubernetesObjects, 'get'>,
  key: ResourceKey,
  uid: string,
): Promise<{ readonly uri: string; readonly ca: string }> => {
  const { app: name } = credentialSecrets.names({ ...key, uid })
  const secret = await objects.get(secrets, { namespace: key.namespace, name })
  if (secret === undefined) throw new Error(`There is no Secret ${key.namespace}/${name}`)
  const text = (field: string): string => Buffer.from(secret.data?.[field] ?? '', 'base64').toString()
  return { uri: text('uri'), ca: text('ca.crt') }
}

/** @throws Error when there is no such Secret, or the server does not let its holder in */
export const signInBySecret = async ({ faked, key }: FakedEnvironment, uid: string, open?: OpenSql): Promise<void> => {
  const { objects } = faked.cluster
  const { uri, ca } = await readAppSecret(objects, key, uid)
  const session = await (open ?? openByAddress(objects, key.namespace))(uri, ca)
  try {
    await session.rows('select 1')
  } finally {
    await session.close()
  }
}

/** Where pods and network are played, names of Services are not resolved: their addresses are asked for in the cluster instead. */
const openByAddress =
  (objects: Pick<KubernetesObjects, 'get'>, namespace: string): OpenSql =>
  async (uri, ca) => {
    const { username, password, hostname, port, pathname } = new URL(uri)
    const service = await objects.get(services, { namespace, name: hostname.split('.')[0] ?? '' })
    return openSession({
      host: service?.spec?.clusterIP ?? '',
      port: Number(port),
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      database: pathname.slice(1),
      ssl: { ca, servername: hostname },
    })
  }
