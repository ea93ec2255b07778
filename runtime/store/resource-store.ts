import type { Resource, ResourceKey, ResourceType } from '../../lib/model/resource.ts'

/** RFC 7396 merge patch: null removes, objects merge, everything else (lists too) replaces. */
export type MergePatch = { readonly [field: string]: unknown }

/** A change of metadata, spec or both; absent parts stay. */
export interface ResourcePatch {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string | null>>
    readonly annotations?: Readonly<Record<string, string | null>>
    /** Replaces the whole list: give a resourceVersion precondition with it. */
    readonly finalizers?: readonly string[]
  }
  readonly spec?: MergePatch
}

/** What must still hold for a write to happen. */
export interface Preconditions {
  readonly uid: string
  readonly resourceVersion?: string
}

/** Narrows a list or watch. Labels must all be equal. */
export interface Selector {
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** A new resource: what the caller decides; the store adds uid, versions and times. */
export interface NewResource<Spec> {
  readonly namespace: string
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly spec: Spec
}

export interface ResourceList<R> {
  readonly items: readonly R[]
  /** Where a watch resumes to miss and repeat nothing after this list. */
  readonly resourceVersion: string
}

export type WatchEvent<R> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: R }
  /** Nothing changed up to this version; a watch may resume from it. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }

/** The spec and status of a resource type. */
export type SpecOf<R extends Resource> = R['spec']

/**
 * Where resources live: Kubernetes' API server, or the embedded Postgres. No field ownership.
 * Every method has a deadline of its own and throws a StoreError (see store-error.ts) whose `reason` says what happened.
 */
export interface ResourceStore {
  /**
   * Which store this is: given once when it was made, the same for every client. Whoever keeps records of its resources
   * compares, so that another or an emptied store is not taken for one in which everything was deleted.
   */
  identity(): Promise<string>
  /** The resource, or undefined. Never from a cache. */
  get<R extends Resource>(type: ResourceType<R>, key: ResourceKey): Promise<R | undefined>
  /** All that match, with the version that a watch resumes from: one consistent snapshot. */
  list<R extends Resource>(type: ResourceType<R>, selector?: Selector): Promise<ResourceList<R>>
  /**
   * Every change after `from`, in order, none twice, none missing; ends when the signal aborts.
   * An object that stops matching the selector's labels arrives as `deleted`.
   * @throws StoreError `Gone` when `from` is older than the log reaches back, or was never reached, as after a restore: list again
   */
  watch<R extends Resource>(
    type: ResourceType<R>,
    options: { readonly from: string; readonly selector?: Selector; readonly signal: AbortSignal },
  ): AsyncIterable<WatchEvent<R>>
  /** @throws StoreError `AlreadyExists`, `Invalid` */
  create<R extends Resource>(type: ResourceType<R>, resource: NewResource<SpecOf<R>>): Promise<R>
  /**
   * Merge-patches metadata and spec. A patch that changes nothing writes nothing and answers the object as it is.
   * @throws StoreError `NotFound`; `Invalid` (a foreign uid, or a rule); `Conflict` (stale resourceVersion)
   */
  patch<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    patch: ResourcePatch,
    preconditions: Preconditions,
  ): Promise<R>
  /** Merge-patches the status alone: moves no generation. @throws as `patch` */
  patchStatus<R extends Resource>(
    type: ResourceType<R>,
    key: ResourceKey,
    status: MergePatch,
    preconditions: Preconditions,
  ): Promise<R>
  /**
   * Asks for deletion: with finalizers sets `deletionTimestamp` and raises the generation, without them removes.
   * Repeating it is harmless. Removing the last finalizer of a deleting object removes it.
   * @throws StoreError `NotFound`; `Conflict` (foreign uid or stale version); `Forbidden` (protected)
   */
  delete<R extends Resource>(type: ResourceType<R>, key: ResourceKey, preconditions: Preconditions): Promise<void>
}
