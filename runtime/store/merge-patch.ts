/** RFC 7396 and equality of JSON values, as both stores and everyone who predicts them mean it. Pure. */
import { isDeepStrictEqual } from 'node:util'

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Applies a merge patch: null removes, objects merge, everything else (lists too) replaces. Changes neither argument.
 * Members that are undefined count as absent, as they do in JSON.
 */
export const mergePatch = (target: unknown, patch: unknown): unknown => {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) merged.delete(field)
    else merged.set(field, mergePatch(merged.get(field), value))
  }
  // fromEntries defines members where assignment would call the setter of `__proto__`.
  return Object.fromEntries(merged)
}

/** Whether two JSON values are the same; the order of an object's members does not count. */
export const sameJson = (a: unknown, b: unknown): boolean => isDeepStrictEqual(a, b)

/** A value as JSON would carry it: a copy without undefined members, dates as text. */
export const asJson = (value: unknown): unknown =>
  value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown)
