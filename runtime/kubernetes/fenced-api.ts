import type { KubernetesApi } from './kubernetes-api.ts'

/**
 * An API server on which nothing is changed unless `mustLead` lets it: asked right before each call, so that a process
 * that slept through the loss of its lease writes nothing when it wakes.
 */
export const fencedApi = (api: KubernetesApi, mustLead: () => void): KubernetesApi => ({
  call: async request => {
    if (request.method !== 'GET') mustLead()
    return await api.call(request)
  },
  lines: request => api.lines(request),
  close: () => api.close(),
})
