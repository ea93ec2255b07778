/** The shape of every resource, with Kubernetes' meaning of each metadata field. */

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

export interface ObjectMetadata {
  readonly name: string
  readonly namespace: string
  /** Given by the store at creation; never used again. */
  readonly uid: string
  /** Opaque, changes with every write; decimal digits on both stores, comparable as integers. */
  readonly resourceVersion: string
  /** Rises when the spec changes and when deletion begins. */
  readonly generation: number
  /** RFC 3339, the store's clock. */
  readonly creationTimestamp: string
  /** Set once deletion was asked for while finalizers hold the object. */
  readonly deletionTimestamp?: string
  readonly finalizers: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly ownerReferences: readonly OwnerReference[]
  /** The client that last changed the spec or asked for deletion, where the store knows it. */
  readonly lastManager?: string
}

/** A resource: what is wanted (`spec`), what is (`status`). Objects from a store are never mutated. */
export interface Resource<Spec = unknown, Status = unknown> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMetadata
  readonly spec: Spec
  readonly status?: Status
}

/** One thing a rule refuses: the field's path in dots (`spec.kind`) and why. */
export interface Violation {
  readonly field: string
  readonly message: string
}

/**
 * What a store must know of a kind. On Kubernetes the CRD and admission policies enforce `validate` and `admitDelete`;
 * the embedded store calls them.
 */
export interface ResourceType<R extends Resource = Resource> {
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
  /**
   * Judges an object about to be written, after defaults. `old` is undefined at creation. An empty list admits.
   * Also called for status writes, with both sides' spec equal.
   */
  readonly validate: (next: unknown, old: R | undefined) => readonly Violation[]
  /** Fills defaults and drops unknown spec fields, as a structural schema does. Pure. Never throws. */
  readonly prune: (spec: unknown) => unknown
  /** Says why a DELETE must be refused, undefined when it may go on. */
  readonly admitDelete: (current: R) => string | undefined
}

/** Name and namespace of a resource. */
export interface ResourceKey {
  readonly namespace: string
  readonly name: string
}

/** A key as one string, `namespace/name`. */
export const keyText = (key: ResourceKey): string => `${key.namespace}/${key.name}`

/** The key of a resource. */
export const keyOf = (resource: Resource): ResourceKey => ({
  namespace: resource.metadata.namespace,
  name: resource.metadata.name,
})
