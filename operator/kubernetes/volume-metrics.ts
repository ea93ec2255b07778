import { Gauge, type Registry } from 'prom-client'
import type { KubernetesHost } from '../host/kubernetes/kubernetes-host.ts'

/** Shows the room on environments' volumes, of those whose servers were asked: at their start, every hour, sooner where little is left. */
export const volumeMetrics = (registry: Registry, host: Pick<KubernetesHost, 'disks'>): void => {
  const gauge = (name: string, help: string, of: 'freeBytes' | 'totalBytes'): void => {
    new Gauge({
      ...{ name, help, labelNames: ['environment_namespace', 'environment'], registers: [registry] },
      collect() {
        this.reset()
        for (const { key, disk } of host.disks())
          this.set({ environment_namespace: key.namespace, environment: key.name }, disk[of])
      },
    })
  }
  gauge('environment_volume_free_bytes', 'Room that is left on the volume of an environment', 'freeBytes')
  gauge('environment_volume_size_bytes', 'Size of the volume of an environment', 'totalBytes')
}
