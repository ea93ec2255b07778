/** What the embedded store and the CRDs need of a kind, made from one definition. */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Resource, ResourceType, Violation } from '../lib/model/resource.ts'
import { API_VERSION } from './metadata.ts'
import type { Rule } from './rules.ts'
import { pruned, type StructuralSchema, structuralSchema } from './structural.ts'

/** A column of `kubectl get`; `wide` ones show with `-o wide` only. */
export interface PrinterColumn {
  readonly name: string
  readonly jsonPath: string
  readonly type?: 'string' | 'date' | 'boolean'
  readonly wide?: boolean
}

export interface KindDefinition<R extends Resource> {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly description: string
  readonly spec: z.ZodObject
  readonly status?: z.ZodObject
  readonly rules: readonly Rule<R>[]
  readonly columns: readonly PrinterColumn[]
  /** Fields that a list can be narrowed by on the server. */
  readonly selectableFields: readonly string[]
  readonly admitDelete?: (current: R) => string | undefined
}

/** The structural schemas of a kind's parts. */
export const schemasOf = <R extends Resource>(
  definition: KindDefinition<R>,
): { readonly spec: StructuralSchema; readonly status: StructuralSchema | undefined } => ({
  spec: structuralSchema(definition.spec, `What is wanted of the ${definition.kind}`),
  status: definition.status && structuralSchema(definition.status, `What is so, written by the operator`),
})

/**
 * The ResourceType of a kind. Its `validate` ratchets as Kubernetes does: what an update leaves unchanged is not judged
 * again, so that a rule made stricter never locks anybody out of an old object.
 */
export const resourceType = <R extends Resource>(definition: KindDefinition<R>): ResourceType<R> => {
  const schema = z.object({
    metadata: z.object({ name: z.string() }),
    spec: definition.spec,
    ...(definition.status && { status: definition.status.optional() }),
  })
  const { spec } = schemasOf(definition)
  return {
    apiVersion: API_VERSION,
    kind: definition.kind,
    plural: definition.plural,
    prune: value => pruned(spec, value),
    admitDelete: definition.admitDelete ?? (() => undefined),
    validate: (next, old) => {
      const issues = schema.safeParse(next).error?.issues ?? []
      const changed = issues.filter(
        ({ path }) => old === undefined || !isDeepStrictEqual(valueAt(next, path), valueAt(old, path)),
      )
      if (changed.length > 0)
        return changed.map(({ path, message }) => ({ field: path.map(String).join('.'), message }))
      // The shape holds, or is what the store has accepted before.
      return definition.rules.filter(rule => !holds(rule, next as R, old)).map(violationOf)
    },
  }
}

const violationOf = <R extends Resource>({ field, message }: Rule<R>): Violation => ({ field, message })

const holds = <R extends Resource>(rule: Rule<R>, next: R, old: R | undefined): boolean => {
  const scope = rule.scope.split('.')
  if (rule.scope !== '' && old !== undefined && isDeepStrictEqual(valueAt(next, scope), valueAt(old, scope)))
    return true
  try {
    return rule.check(next, old)
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, step) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, step) : undefined),
    value,
  )
