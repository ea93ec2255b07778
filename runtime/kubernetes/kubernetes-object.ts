/** Objects of Kubernetes' own kinds, as they are on the wire. Typed by whoever reads them (client-node's types, type-only). */

/** A kind and where it is served. */
export interface ObjectType<O extends KubernetesObject = KubernetesObject> {
  /** `v1`, `apps/v1`, … */
  readonly apiVersion: string
  readonly kind: string
  /** The last part of its path. */
  readonly plural: string
  /** true: not in a namespace. */
  readonly clusterScoped?: boolean
  /** Carries the type of its objects; never set. */
  readonly object?: O
}

/** What every object has. */
export interface KubernetesObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata?: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
    readonly deletionTimestamp?: string | Date
  }
}

/** Where an object is. `namespace` is '' for cluster-scoped kinds. */
export interface ObjectKey {
  readonly namespace: string
  readonly name: string
}

export interface ObjectList<O> {
  readonly items: readonly O[]
  readonly resourceVersion: string
}

/** Reads and writes objects of Kubernetes' own kinds. All throw StoreError. */
export interface KubernetesObjects {
  /** The object, or undefined. */
  get<O extends KubernetesObject>(type: ObjectType<O>, key: ObjectKey): Promise<O | undefined>
  /** All that match, page by page, from one snapshot. */
  list<O extends KubernetesObject>(
    type: ObjectType<O>,
    selector?: { readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> },
  ): Promise<ObjectList<O>>
  /** @throws StoreError `AlreadyExists` */
  create<O extends KubernetesObject>(type: ObjectType<O>, object: O): Promise<O>
  /** Server-side apply, by force, as `manager`: our fields are as given, others' stay. */
  apply<O extends KubernetesObject>(type: ObjectType<O>, object: O, manager?: string): Promise<O>
  /** RFC 7396 merge patch; give `metadata.uid` or `resourceVersion` in it as preconditions. */
  merge<O extends KubernetesObject>(
    type: ObjectType<O>,
    key: ObjectKey,
    patch: Readonly<Record<string, unknown>>,
    subresource?: 'status' | 'scale',
  ): Promise<O>
  /**
   * Asks for deletion; harmless when it is gone already, or another one has its name.
   * @throws StoreError `Conflict` when the resourceVersion is stale
   */
  delete(
    type: ObjectType,
    key: ObjectKey,
    options: {
      readonly uid: string
      readonly resourceVersion?: string
      readonly gracePeriodSeconds?: number
      readonly propagation?: 'Background' | 'Foreground' | 'Orphan'
    },
  ): Promise<void>
}
