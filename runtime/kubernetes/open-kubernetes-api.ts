import type { Registry } from 'prom-client'
import { clusterAccess } from './cluster-access.ts'
import { HttpKubernetesApi } from './http-kubernetes-api.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { transportMetrics } from './transport-metrics.ts'

export interface OpenKubernetesApiOptions {
  /** Who calls, such as `svc-operator`. */
  readonly name: string
  readonly version: string
  /** Path of a kubeconfig; by default what kubectl would use, else the pod's service account. */
  readonly kubeconfig?: string | undefined
  readonly registry?: Registry | undefined
}

/** An API server, and the namespace that the kubeconfig or the pod is in, where it says so. */
export interface OpenedKubernetesApi {
  readonly api: KubernetesApi
  readonly namespace: string | undefined
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
}: OpenKubernetesApiOptions): Promise<OpenedKubernetesApi> => {
  const access = await clusterAccess(kubeconfig)
  const api = new HttpKubernetesApi({
    access,
    userAgent: `${name}/${version}`,
    metrics: registry && transportMetrics(registry),
  })
  return { api, namespace: access.namespace }
}
