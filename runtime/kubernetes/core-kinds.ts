/** Kinds of Kubernetes' own that several rooms read and write. What an instance is made of beside them is the operator's. */
import type { OwnerReference } from '../../lib/model/resource.ts'
import type { KubernetesObject, ObjectType } from './kubernetes-object.ts'

export const namespaces: ObjectType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', clusterScoped: true }

export interface Secret extends KubernetesObject {
  readonly metadata?: NonNullable<KubernetesObject['metadata']> & {
    readonly ownerReferences?: readonly OwnerReference[]
  }
  readonly type?: string
  /** Each value in base64. */
  readonly data?: Readonly<Record<string, string>>
}
export const secrets: ObjectType<Secret> = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' }
