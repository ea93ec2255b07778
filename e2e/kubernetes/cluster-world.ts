/** The scenarios' view of a control plane on a cluster: everything through the API server, as from anybody's laptop. */
import { type ConnectionOptions, checkServerIdentity } from 'node:tls'
import { environmentType } from '../../crds/environment-type.ts'
import type { KubernetesObjects, ObjectKey } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { CLAIM } from '../../testkit/kubernetes/claim-faker.ts'
import { type OpenSql, openSession } from '../../testkit/open-sql.ts'
import type { ApiClient } from '../api-client.ts'
import { breakPostgresInPod } from '../break-postgres.ts'
import type { World } from '../world.ts'
import { type ClusterHandles, openServiceDoor, type ServiceDoor } from './service-door.ts'

/** A world that is a cluster; close it when done. */
export interface ClusterWorld extends World {
  readonly objects: KubernetesObjects
  close(): Promise<void>
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

export const clusterWorld = (
  cluster: ClusterHandles,
  { api, store }: { readonly api: ApiClient; readonly store: ResourceStore },
): ClusterWorld => {
  const doors = new Map<string, Promise<ServiceDoor>>()
  const openSql: OpenSql = async (connectionUri, ca) => {
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
  }
  return {
    api,
    openSql,
    store,
    objects: cluster.objects,
    isKept: async place => {
      const [namespace = '', name = ''] = place.split('/').slice(-2)
      const claim = await cluster.objects.get(CLAIM, { namespace, name })
      return claim !== undefined && claim.metadata?.deletionTimestamp === undefined
    },
    breakPostgres: async key => {
      const environment = await store.get(environmentType, key)
      if (environment === undefined) throw new Error(`No resource ${key.name}`)
      return breakPostgresInPod(cluster, environment)
    },
    close: async () => {
      for (const door of doors.values()) await (await door).close()
      doors.clear()
    },
  }
}
