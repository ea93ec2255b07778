/**
 * What each verb makes of an object, with Kubernetes' meaning: preconditions, merge, defaults, rules, generation, finalizers.
 * Pure; the store calls these while the row is locked.
 */
import type { Resource, ResourceType, Violation } from '../../lib/model/resource.ts'
import { asJson, mergePatch, sameJson } from '../store/merge-patch.ts'
import type { MergePatch, NewResource, Preconditions, ResourcePatch } from '../store/resource-store.ts'
import { StoreError } from '../store/store-error.ts'
import { metadataViolations } from './metadata-rules.ts'
import { bodyOf } from './object-row.ts'

/** An object about to be written; `remove` when this write lets it go. `body` is the text of its body column. */
export interface Change<R extends Resource> {
  readonly next: R
  readonly body: string
  readonly remove: boolean
}

const MAX_BODY_BYTES = 1024 * 1024

const describe = (resource: Resource): string =>
  `${resource.kind} ${resource.metadata.namespace}/${resource.metadata.name}`

const refuse = (resource: Resource, violations: readonly Violation[]): never => {
  const told = violations.map(violation => `${violation.field}: ${violation.message}`).join('; ')
  throw new StoreError('Invalid', `${describe(resource)} is invalid: ${told}`, { violations })
}

const change = <R extends Resource>(next: R, remove: boolean): Change<R> => {
  const body = bodyOf(next)
  if (Buffer.byteLength(body) > MAX_BODY_BYTES)
    refuse(next, [{ field: '', message: `is larger than ${MAX_BODY_BYTES} bytes` }])
  return { next, body, remove }
}

const isUnder = (violation: Violation, ...parts: readonly string[]): boolean =>
  parts.some(part => violation.field === part || violation.field.startsWith(`${part}.`))

/** A new object, complete but for what the database gives: version and creation time. */
export const creationOf = <R extends Resource>(
  type: ResourceType<R>,
  given: NewResource<R['spec']>,
  uid: string,
  manager: string,
): Change<R> => {
  const next = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: {
      namespace: given.namespace,
      name: given.name,
      uid,
      resourceVersion: '',
      generation: 1,
      creationTimestamp: '',
      finalizers: [...(given.finalizers ?? [])],
      labels: { ...given.labels },
      annotations: { ...given.annotations },
      ownerReferences: [],
      lastManager: manager,
    },
    spec: asJson(type.prune(asJson(given.spec))),
  } satisfies Resource as unknown as R
  const violations = [...metadataViolations(next.metadata), ...type.validate(next, undefined)]
  if (violations.length > 0) refuse(next, violations)
  return change(next, false)
}

/**
 * A stale version is a Conflict; another uid is what an API server makes of a changed uid: Invalid.
 * @throws StoreError `Conflict`, `Invalid`
 */
const checkPatchPreconditions = (current: Resource, preconditions: Preconditions): void => {
  checkVersion(current, preconditions)
  if (preconditions.uid !== current.metadata.uid)
    refuse(current, [{ field: 'metadata.uid', message: 'belongs to another object: field is immutable' }])
}

const checkVersion = (current: Resource, { resourceVersion }: Preconditions): void => {
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw new StoreError('Conflict', `${describe(current)} has changed: read it again and try again`)
}

/** The object after a patch, or undefined when nothing changes. */
export const patchedObject = <R extends Resource>(
  type: ResourceType<R>,
  current: R,
  patch: ResourcePatch,
  preconditions: Preconditions,
  manager: string,
): Change<R> | undefined => {
  checkPatchPreconditions(current, preconditions)
  const labels = mergePatch(current.metadata.labels, patch.metadata?.labels ?? {}) as R['metadata']['labels']
  const annotations = mergePatch(
    current.metadata.annotations,
    patch.metadata?.annotations ?? {},
  ) as R['metadata']['annotations']
  const finalizers = patch.metadata?.finalizers ?? current.metadata.finalizers
  // Metadata alone leaves an old spec as it is: defaults that came later are no change that somebody asked for.
  const spec =
    patch.spec === undefined ? current.spec : asJson(type.prune(asJson(mergePatch(current.spec, patch.spec))))
  const specChanged = !sameJson(spec, current.spec)
  const markChanged = !sameJson([labels, annotations], [current.metadata.labels, current.metadata.annotations])
  if (!specChanged && !markChanged && sameJson(finalizers, current.metadata.finalizers)) return undefined
  const next = {
    ...current,
    metadata: {
      ...current.metadata,
      labels,
      annotations,
      finalizers: [...finalizers],
      // As on an API server a default that came later is no new wish.
      generation:
        current.metadata.generation + (specChanged && !sameJson(spec, asJson(type.prune(current.spec))) ? 1 : 0),
      ...(specChanged ? { lastManager: manager } : {}),
    },
    spec,
  }
  const violations = [
    ...metadataViolations(next.metadata),
    ...type.validate(next, current),
    ...addedFinalizers(current, finalizers),
  ].filter(violation =>
    // What a write does not touch is not held against it: an object older than a rule must still let its finalizer go.
    specChanged
      ? !isUnder(violation, 'status')
      : isUnder(violation, 'metadata.finalizers') ||
        (markChanged && isUnder(violation, 'metadata.labels', 'metadata.annotations')),
  )
  if (violations.length > 0) refuse(current, violations)
  return change(next, next.metadata.deletionTimestamp !== undefined && finalizers.length === 0)
}

const addedFinalizers = (current: Resource, finalizers: readonly string[]): readonly Violation[] =>
  current.metadata.deletionTimestamp !== undefined &&
  finalizers.some(finalizer => !current.metadata.finalizers.includes(finalizer))
    ? [{ field: 'metadata.finalizers', message: 'cannot be added while the object is being deleted' }]
    : []

/** The object after a status patch, or undefined when nothing changes. */
export const statusPatchedObject = <R extends Resource>(
  type: ResourceType<R>,
  current: R,
  patch: MergePatch,
  preconditions: Preconditions,
): Change<R> | undefined => {
  checkPatchPreconditions(current, preconditions)
  const status = mergePatch(current.status, asJson(patch))
  if (sameJson(status, current.status ?? {})) return undefined
  const next = { ...current, status }
  const violations = type.validate(next, current).filter(violation => isUnder(violation, 'status'))
  if (violations.length > 0) refuse(current, violations)
  return change(next, false)
}

/** The object with its deletion begun or done, or undefined when it already is being deleted. */
export const deletedObject = <R extends Resource>(
  type: ResourceType<R>,
  current: R,
  preconditions: Preconditions,
  manager: string,
  now: Date,
): Change<R> | undefined => {
  if (preconditions.uid !== current.metadata.uid)
    throw new StoreError('Conflict', `${describe(current)} is another object than the one to delete`)
  checkVersion(current, preconditions)
  if (current.metadata.deletionTimestamp !== undefined) return undefined
  const reason = type.admitDelete(current)
  if (reason !== undefined) throw new StoreError('Forbidden', reason)
  const metadata = { ...current.metadata, lastManager: manager }
  if (metadata.finalizers.length === 0) return change({ ...current, metadata }, true)
  return change(
    {
      ...current,
      metadata: { ...metadata, deletionTimestamp: now.toISOString(), generation: metadata.generation + 1 },
    },
    false,
  )
}
