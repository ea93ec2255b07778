/** Who may reach the databases of a namespace: its own pods, the control plane, and others only those that are exposed. Pure. */
import type { V1NetworkPolicySpec } from '@kubernetes/client-node'
import { LABELS, OPERATOR, POSTGRES_APP } from '../../../crds/metadata.ts'
import type { EnvironmentKind } from '../../../lib/model/environment.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import type { NetworkPolicy } from './object-types.ts'

const port = { port: POSTGRES_PORT, protocol: 'TCP' }

/** What holds for every database. Policies add up: another one can only let in more. */
export const buildNetworkPolicy = (namespace: string, operatorNamespace: string): NetworkPolicy =>
  policy(namespace, POSTGRES_APP, {
    podSelector: { matchLabels: { [LABELS.app]: POSTGRES_APP } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      {
        // The client's own name for it is not the one on the wire.
        ...{
          from: [
            { podSelector: {} },
            { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } } },
          ],
        },
        ports: [port],
      },
    ],
    // A database answers and never calls.
    egress: [],
  })

/** Lets everybody in to those of the kinds that are exposed, and to no other. Where none is, it lets nobody in. */
export const buildExposurePolicy = (namespace: string, kinds: readonly EnvironmentKind[]): NetworkPolicy =>
  policy(namespace, `${POSTGRES_APP}-exposed`, {
    podSelector: {
      matchLabels: { [LABELS.app]: POSTGRES_APP },
      ...(kinds.length === 0 ? {} : { matchExpressions: [{ key: LABELS.kind, operator: 'In', values: [...kinds] }] }),
    },
    policyTypes: ['Ingress'],
    // No `from` at all is everybody.
    ingress: kinds.length === 0 ? [] : [{ ports: [port] }],
  })

const policy = (namespace: string, name: string, spec: V1NetworkPolicySpec): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace, labels: { [LABELS.managedBy]: OPERATOR } },
  spec,
})
