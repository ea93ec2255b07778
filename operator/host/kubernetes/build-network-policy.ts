/** Who may reach the databases of a namespace: its own pods, the control plane, and others only where they are exposed. Pure. */
import type { V1NetworkPolicyPeer } from '@kubernetes/client-node'
import { LABELS, OPERATOR, POSTGRES_APP } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from './instance-names.ts'
import type { NetworkPolicy } from './object-types.ts'

export const buildNetworkPolicy = (
  namespace: string,
  { operatorNamespace, exposed }: { readonly operatorNamespace: string; readonly exposed: boolean },
): NetworkPolicy => {
  const inside: V1NetworkPolicyPeer[] = [
    { podSelector: {} },
    { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } } },
  ]
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: POSTGRES_APP, namespace, labels: { [LABELS.managedBy]: OPERATOR } },
    spec: {
      podSelector: { matchLabels: { [LABELS.app]: POSTGRES_APP } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          // No `from` at all is everybody.
          ...(exposed ? {} : { from: inside }),
          ports: [{ port: POSTGRES_PORT, protocol: 'TCP' }],
        },
      ],
      // A database answers and never calls.
      egress: [],
    },
  }
}
