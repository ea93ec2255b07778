/** The one Service of an instance: where clients connect, whether it is ready or not. Pure. */
import type { V1ServiceSpec } from '@kubernetes/client-node'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import type { Exposure } from './host-settings.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Service } from './object-types.ts'

export const buildService = (
  names: InstanceNames,
  exposure: Exposure,
  /** What its server was seen to prove. */
  provenHost?: string,
): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: names.name,
    namespace: names.namespace,
    labels: names.labels,
    annotations: {
      ...names.annotations,
      ...(exposure.type === 'LoadBalancer' ? exposure.annotations : {}),
      ...(provenHost === undefined || exposure.type === 'None' ? {} : { [ANNOTATIONS.provenHost]: provenHost }),
    },
    ownerReferences: [names.owner],
  },
  spec: {
    ...serviceType(exposure),
    // One server and no other to turn to: a client is better told by Postgres that it starts than by nobody.
    publishNotReadyAddresses: true,
    selector: names.selector,
    ports: [{ name: 'postgres', port: POSTGRES_PORT, targetPort: 'postgres', protocol: 'TCP' }],
  },
})

const serviceType = (exposure: Exposure): Partial<V1ServiceSpec> => {
  switch (exposure.type) {
    case 'None':
      return { type: 'ClusterIP' }
    case 'NodePort':
      return { type: 'NodePort' }
    case 'LoadBalancer':
      return {
        type: 'LoadBalancer',
        ...(exposure.loadBalancerClass === undefined ? {} : { loadBalancerClass: exposure.loadBalancerClass }),
        ...(exposure.sourceRanges === undefined ? {} : { loadBalancerSourceRanges: exposure.sourceRanges }),
      }
  }
}
