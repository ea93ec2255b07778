/** What a program does that has nothing but an environment's `app` Secret: signs in by its `uri`, trusting the authority in it. */
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { secrets, services } from '../../operator/host/kubernetes/object-types.ts'
import { openSession } from '../../testkit/open-sql.ts'
import type { FakedEnvironment } from './faked-environment.ts'

/**
 * Where pods and network are played, names of Services are not resolved: their addresses are asked for in the cluster instead.
 * @throws Error when there is no such Secret, or the server does not let its holder in
 */
export const signInBySecret = async ({ faked, key }: FakedEnvironment, uid: string): Promise<void> => {
  const { objects } = faked.cluster
  const { namespace } = key
  const { app: name } = credentialSecrets.names({ ...key, uid })
  const { data = {} } = (await objects.get(secrets, { namespace, name })) ?? {}
  const text = (field: string): string => Buffer.from(data[field] ?? '', 'base64').toString()
  const { username, password, hostname, port, pathname } = new URL(text('uri'))
  const service = await objects.get(services, { namespace, name: hostname.split('.')[0] ?? '' })
  const session = await openSession({
    host: service?.spec?.clusterIP ?? '',
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    ssl: { ca: text('ca.crt'), servername: hostname },
  })
  try {
    await session.rows('select 1')
  } finally {
    await session.close()
  }
}
