/** Writes a status, once, and only where it differs from the one that is there. */
import { isDeepStrictEqual } from 'node:util'
import type { Environment, EnvironmentStatus } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { keyOf } from '../../lib/model/resource.ts'
import type { MergePatch, ResourceStore } from '../../runtime/store/resource-store.ts'
import { onSameGround } from './same-ground.ts'

/**
 * Makes the store's status equal to the wanted one. What was judged is a precondition: a status that was decided on old
 * ground is refused.
 * @throws StoreError `Conflict` when what was judged changed since
 */
export const report = async (
  store: ResourceStore,
  environment: Environment,
  wanted: EnvironmentStatus,
): Promise<Environment> => {
  const patch = mergePatch(environment.status ?? {}, wanted)
  if (patch === undefined) return environment
  return await onSameGround(store, environment, ground =>
    store.patchStatus(environmentType, keyOf(environment), patch, ground),
  )
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The RFC 7396 patch that turns one object into another; undefined when they are equal. */
export const mergePatch = (from: Fields, to: Fields): MergePatch | undefined => {
  const patch: Record<string, unknown> = {}
  for (const field of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from[field], to[field]]
    if (isDeepStrictEqual(before, after)) continue
    if (after === undefined) patch[field] = null
    else patch[field] = isFields(before) && isFields(after) ? mergePatch(before, after) : after
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}
