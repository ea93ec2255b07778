import type { ObjectMetadata, OwnerReference, Resource, ResourceType } from '../../lib/model/resource.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { lastManagerOf, type ManagedFields } from './last-manager.ts'

/** Metadata as it is on the wire: what is empty is left out. */
interface WireMetadata {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly finalizers?: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFields[]
}

/** An object's metadata with nothing left out, and without managedFields, which outweigh the rest. */
export const metadataOf = (object: KubernetesObject): ObjectMetadata => {
  const wire = (object.metadata ?? {}) as WireMetadata
  return {
    name: wire.name ?? '',
    namespace: wire.namespace ?? '',
    uid: wire.uid ?? '',
    resourceVersion: wire.resourceVersion ?? '',
    generation: wire.generation ?? 0,
    creationTimestamp: wire.creationTimestamp ?? '',
    ...(wire.deletionTimestamp === undefined ? {} : { deletionTimestamp: wire.deletionTimestamp }),
    finalizers: wire.finalizers ?? [],
    labels: wire.labels ?? {},
    annotations: wire.annotations ?? {},
    ownerReferences: wire.ownerReferences ?? [],
  }
}

/** A custom resource as our ports have it. */
export const resourceFromObject = <R extends Resource>(type: ResourceType<R>, object: KubernetesObject): R => {
  const { spec, status, metadata } = object as {
    readonly spec?: unknown
    readonly status?: unknown
    readonly metadata?: WireMetadata
  }
  // Who asked for a deletion is not on record: the spec's last writer would be a guess.
  const lastManager = metadata?.deletionTimestamp === undefined ? lastManagerOf(metadata?.managedFields) : undefined
  // The API server has judged it by the kind's schema: this is where R comes from.
  return {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { ...metadataOf(object), ...(lastManager === undefined ? {} : { lastManager }) },
    spec: spec ?? {},
    ...(status === undefined ? {} : { status }),
  } as R
}
