/** The kinds of Kubernetes' own that an environment on a cluster is made of. */
import type {
  V1ContainerStatus,
  V1NetworkPolicy,
  V1Node,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodSpec,
  V1PodStatus,
  V1RoleBinding,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet,
  V1StorageClass,
} from '@kubernetes/client-node'
import type { KubernetesObject, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'

export { namespaces, type Secret, secrets } from '../../../runtime/kubernetes/core-kinds.ts'

/** An object as it is on the wire: times are text there, whatever the client's classes say. */
type Wire<O> = Omit<O, 'metadata'> & KubernetesObject & { readonly metadata?: WireMetadata }
type WireMetadata = NonNullable<KubernetesObject['metadata']> & {
  readonly creationTimestamp?: string
  readonly ownerReferences?: readonly OwnerReference[]
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export type StatefulSet = Wire<V1StatefulSet>
/** A pod as it is written, and as the API server tells it. */
export type FullPod = Wire<V1Pod>
/** A pod as far as it is read here, and kept: the rest outweighs that many times. */
export type Pod = Omit<FullPod, 'spec' | 'status'> & {
  readonly spec?: Pick<V1PodSpec, 'nodeName' | 'volumes'>
  readonly status?: Pick<V1PodStatus, 'phase' | 'conditions'> & {
    readonly containerStatuses?: readonly PodContainer[]
  }
}
export type PodContainer = Pick<
  V1ContainerStatus,
  'name' | 'containerID' | 'ready' | 'started' | 'restartCount' | 'state' | 'lastState'
>
export type Service = Wire<V1Service>
export type Claim = Wire<V1PersistentVolumeClaim>
export type ServiceAccount = Wire<V1ServiceAccount>
export type RoleBinding = Wire<V1RoleBinding>
export type NetworkPolicy = Wire<V1NetworkPolicy>
export type Volume = Wire<V1PersistentVolume>
export type StorageClass = Wire<V1StorageClass>
export type Node = Wire<V1Node>

export const statefulSets: ObjectType<StatefulSet> = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
}
export const pods: ObjectType<Pod> = { apiVersion: 'v1', kind: 'Pod', plural: 'pods' }
export const services: ObjectType<Service> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }
export const claims: ObjectType<Claim> = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
}
export const serviceAccounts: ObjectType<ServiceAccount> = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
}
export const roleBindings: ObjectType<RoleBinding> = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
}
export const networkPolicies: ObjectType<NetworkPolicy> = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
}
export const volumes: ObjectType<Volume> = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  clusterScoped: true,
}
export const storageClasses: ObjectType<StorageClass> = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  clusterScoped: true,
}
export const nodes: ObjectType<Node> = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', clusterScoped: true }
export const definitions: ObjectType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  clusterScoped: true,
}
