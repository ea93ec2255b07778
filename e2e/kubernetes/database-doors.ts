/** Ways from this machine to databases in a cluster, by the URIs that programs in it use: through the API server, as from anybody's laptop. */
import { type ConnectionOptions, checkServerIdentity } from 'node:tls'
import type { ObjectKey } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type OpenSql, openSession } from '../../testkit/open-sql.ts'
import { type ClusterHandles, openServiceDoor, type ServiceDoor } from './service-door.ts'

export interface DatabaseDoors {
  /** Proves the server by the name in the URI; the authority must be given. @throws Error what hinders a sign-in */
  readonly openSql: OpenSql
  /** Ends every session too. */
  readonly close: () => Promise<void>
}

/** The Service that a `connection_uri` names: `<name>.<namespace>.svc`. */
const serviceOf = (host: string): ObjectKey => {
  const [name, namespace, svc] = host.split('.')
  if (name === undefined || namespace === undefined || svc !== 'svc') throw new Error(`${host} is no Service's name`)
  return { namespace, name }
}

/** TLS as a client that was told the authority asks for it: the server must prove the name in the URI, not where it is met. */
const proven = (host: string, ca: string | undefined): ConnectionOptions => {
  if (ca === undefined) throw new Error('The connection came without the authority of its server')
  return { ca, servername: host, checkServerIdentity: (_met, certificate) => checkServerIdentity(host, certificate) }
}

/** One door for each Service, opened when it is first needed. */
export const databaseDoors = (cluster: ClusterHandles): DatabaseDoors => {
  const doors = new Map<string, Promise<ServiceDoor>>()
  return {
    openSql: async (connectionUri, ca) => {
      const { hostname, port, username, password, pathname } = new URL(connectionUri)
      let door = doors.get(hostname)
      if (door === undefined) doors.set(hostname, (door = openServiceDoor(cluster, serviceOf(hostname))))
      if (port !== '5432') throw new Error(`The Service's port is 5432, not ${port}`)
      return openSession({
        host: '127.0.0.1',
        port: (await door).port,
        user: username,
        password: decodeURIComponent(password),
        database: pathname.slice(1),
        ssl: proven(hostname, ca),
      })
    },
    close: async () => {
      for (const door of doors.values()) await (await door).close()
      doors.clear()
    },
  }
}
