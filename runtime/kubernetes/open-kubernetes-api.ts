import type { Registry } from 'prom-client'
import { StoreClock } from '../store/store-clock.ts'
import { clusterAccess } from './cluster-access.ts'
import { HttpKubernetesApi } from './http-kubernetes-api.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { ClusterAccess } from './sign-in.ts'
import { transportMetrics } from './transport-metrics.ts'

export interface OpenKubernetesApiOptions {
  /** Who calls, such as `svc-operator`. */
  readonly name: string
  readonly version: string
  /** Path of a kubeconfig; by default what kubectl would use, else the pod's service account. */
  readonly kubeconfig?: string | undefined
  readonly registry?: Registry | undefined
  /** Whether calls that change something may be made now, such as `elector.isLeading`; they are Unavailable otherwise. */
  readonly mayWrite?: () => boolean
}

export interface OpenedKubernetesApi {
  readonly api: KubernetesApi
  /** How it is reached, for others that connect by themselves. `access.namespace` is that of the kubeconfig or the pod. */
  readonly access: ClusterAccess
  /** The time by the API server's clock. */
  readonly time: StoreClock
}

/**
 * Opens the API server of a kubeconfig or of the pod we run in. Connects at the first call.
 * @throws Error when there is no kubeconfig and no service account
 */
export const openKubernetesApi = async ({
  name,
  version,
  kubeconfig,
  registry,
  mayWrite,
}: OpenKubernetesApiOptions): Promise<OpenedKubernetesApi> => {
  const access = await clusterAccess(kubeconfig)
  const time = new StoreClock()
  const api = new HttpKubernetesApi({
    access,
    userAgent: `${name}/${version}`,
    metrics: registry && transportMetrics(registry),
    mayWrite,
    time,
  })
  return { api, access, time }
}
