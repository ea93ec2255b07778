/** The scenarios' view of a control plane on a cluster: everything through the API server, as from anybody's laptop. */
import { environmentType } from '../../crds/environment-type.ts'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { CLAIM } from '../../testkit/kubernetes/claim-faker.ts'
import type { ApiClient } from '../api-client.ts'
import { breakPostgresInPod } from '../break-postgres.ts'
import type { World } from '../world.ts'
import { databaseDoors } from './database-doors.ts'
import type { ClusterHandles } from './service-door.ts'

/** A world that is a cluster; close it when done. */
export interface ClusterWorld extends World {
  readonly objects: KubernetesObjects
  close(): Promise<void>
}

export const clusterWorld = (
  cluster: ClusterHandles,
  { api, store }: { readonly api: ApiClient; readonly store: ResourceStore },
): ClusterWorld => {
  const { openSql, close } = databaseDoors(cluster)
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
    close,
  }
}
