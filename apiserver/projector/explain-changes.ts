/**
 * Tells our own changes of a spec from somebody else's: pure. A changed field is ours when something that we wrote, and
 * whose effect was not folded yet, set it to the value that it has now. Coalesced events need no special care: several
 * writes of ours, with others' in between, are judged field by field.
 */
import { isDeepStrictEqual } from 'node:util'
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { specChangesOf } from '../dispatch/build-spec.ts'
import type { UnderWay } from '../store/environment-folds.ts'

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The leaves of an object by dotted path. A request is one leaf: it is replaced as a whole. */
const leavesOf = (value: Readonly<Record<string, unknown>>, prefix = ''): Map<string, unknown> => {
  const leaves = new Map<string, unknown>()
  for (const [name, inner] of Object.entries(value)) {
    const path = `${prefix}${name}`
    if (isObject(inner) && path !== 'request') for (const leaf of leavesOf(inner, `${path}.`)) leaves.set(...leaf)
    else if (inner !== undefined) leaves.set(path, inner)
  }
  return leaves
}

/** The fields that differ, by dotted path, sorted. */
const changedFields = (before: EnvironmentSpec, after: EnvironmentSpec): readonly string[] => {
  const [old, now] = [leavesOf(before), leavesOf(after)]
  const all = new Set([...old.keys(), ...now.keys()])
  return [...all].filter(field => !isDeepStrictEqual(old.get(field), now.get(field))).sort()
}

/** The changed fields that nothing of ours explains, by dotted path, sorted. */
export const unexplainedFields = (
  before: EnvironmentSpec,
  after: EnvironmentSpec,
  underWay: Pick<UnderWay, 'intents' | 'requestIsOurs'>,
): readonly string[] => {
  const now = leavesOf(after)
  const patches = underWay.intents.map(intent => leavesOf(specChangesOf(intent)))
  const isOurs = (field: string): boolean => {
    const value = now.get(field)
    if (field === 'request') return value !== undefined && underWay.requestIsOurs
    // null in a merge patch takes the field away.
    return patches.some(patch => patch.has(field) && isDeepStrictEqual(patch.get(field) ?? undefined, value))
  }
  return changedFields(before, after).filter(field => !isOurs(field))
}
