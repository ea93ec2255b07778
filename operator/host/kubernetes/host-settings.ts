import type { V1PodSpec, V1ServiceSpec } from '@kubernetes/client-node'
import { OPERATOR } from '../../../crds/metadata.ts'
import type { EnvironmentKind } from '../../../lib/model/environment.ts'

/** Where pods may run, passed through to them as it is. */
export type Placement = Pick<
  V1PodSpec,
  | 'nodeSelector'
  | 'tolerations'
  | 'affinity'
  | 'topologySpreadConstraints'
  | 'priorityClassName'
  | 'runtimeClassName'
  | 'schedulerName'
>

/** How environments are reached from outside the cluster. */
export type Exposure =
  | { readonly type: 'None' }
  /** `host` is a name or address of the nodes. */
  | { readonly type: 'NodePort'; readonly host: string }
  | {
      readonly type: 'LoadBalancer'
      readonly annotations?: Readonly<Record<string, string>>
      readonly loadBalancerClass?: string
      readonly sourceRanges?: NonNullable<V1ServiceSpec['loadBalancerSourceRanges']>
    }

/** What a cluster admin decides about environments on Kubernetes. */
export interface KubernetesHostSettings {
  /** Namespace of the operator: where its authority is kept, and who may reach Postgres. */
  readonly operatorNamespace: string
  /** The label by which an operator knows its own: of two in one cluster neither touches what is the other's. */
  readonly managedBy: string
  /** The image of environments that name none. */
  readonly image: string
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  readonly imagePullSecrets: readonly string[]
  /** undefined: the cluster's default class. */
  readonly storageClass: string | undefined
  readonly placement: Readonly<Record<EnvironmentKind, Placement>>
  readonly exposure: Readonly<Record<EnvironmentKind, Exposure>>
  /** The part of an environment's limits that is reserved for it. */
  readonly requestShare: { readonly cpu: number; readonly memory: number }
  /** How long Postgres may take to stop before it is killed. */
  readonly graceSeconds: Readonly<Record<EnvironmentKind, number>>
  /** How long retained data is kept at least. */
  readonly retentionDays: number
}

const all = <T>(value: T): Record<EnvironmentKind, T> => ({ production: value, staging: value, preview: value })

/** Settings with what almost everybody wants. */
export const DEFAULT_HOST_SETTINGS: KubernetesHostSettings = {
  operatorNamespace: 'svc-system',
  managedBy: OPERATOR,
  image: 'svc-postgres:17',
  imagePullPolicy: 'IfNotPresent',
  imagePullSecrets: [],
  storageClass: undefined,
  placement: all({}),
  exposure: all<Exposure>({ type: 'None' }),
  requestShare: { cpu: 0.1, memory: 1 },
  graceSeconds: { production: 1800, staging: 1800, preview: 120 },
  retentionDays: 7,
}
