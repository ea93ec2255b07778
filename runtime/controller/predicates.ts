/** Which cache events deserve a reconcile. Events without a new version never get here: the cache drops them. */
import { isDeepStrictEqual } from 'node:util'
import type { Resource } from '../../lib/model/resource.ts'
import type { CacheEvent } from './cache.ts'
import { PRIORITY } from './work-queue.ts'

export type Predicate<R extends Resource> = (event: CacheEvent<R>) => boolean

const unlessModified =
  <R extends Resource>(changed: (old: R, object: R) => boolean): Predicate<R> =>
  ({ type, old, object }) =>
    type !== 'modified' || old === undefined || changed(old, object)

/** Anything but a change that left the generation alone: a new object, a new spec, a requested or finished deletion. */
export const generationChanged: Predicate<Resource> = unlessModified(
  (old, object) => old.metadata.generation !== object.metadata.generation,
)

/** Anything but a change that left labels and annotations alone. */
export const labelsOrAnnotationsChanged: Predicate<Resource> = unlessModified(
  (old, object) =>
    !isDeepStrictEqual(old.metadata.labels, object.metadata.labels) ||
    !isDeepStrictEqual(old.metadata.annotations, object.metadata.annotations),
)

/** Passes what at least one predicate passes. */
export const anyOf =
  <R extends Resource>(...predicates: readonly Predicate<R>[]): Predicate<R> =>
  event =>
    predicates.some(predicate => predicate(event))

/** Somebody's wish before what merely happened, and that before what a first list brings. */
export const eventPriority = (event: CacheEvent<Resource>): number => {
  if (event.initial) return PRIORITY.resync
  return event.type !== 'deleted' && generationChanged(event) ? PRIORITY.user : PRIORITY.event
}
