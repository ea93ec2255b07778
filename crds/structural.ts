/**
 * zod → the structural schema that a CRD holds. What a structural schema cannot say, or what would be accepted and then
 * surprise (no bound, no description), is an error here and not at `kubectl apply`.
 */
import { z } from 'zod'

/** A node of a structural schema, see the Kubernetes documentation of CustomResourceDefinitions. */
export interface StructuralSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description: string
  readonly properties?: Readonly<Record<string, StructuralSchema>>
  readonly required?: readonly string[]
  readonly items?: StructuralSchema
  readonly default?: unknown
  readonly [keyword: string]: unknown
}

const TYPES: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'integer', 'number', 'boolean'])

/** Keywords that pass as they are. */
const PLAIN = new Set([
  'type',
  'description',
  'required',
  'enum',
  'pattern',
  'format',
  'default',
  'nullable',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
])

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The structural schema of a zod object.
 * @throws TypeError naming the field that has a union, a reference, an unknown keyword, no description or no bound
 */
export const structuralSchema = (schema: z.ZodObject, description: string): StructuralSchema => {
  const json = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' })
  const { $schema: _, ...root } = json
  return convert({ description, ...root }, '')
}

const convert = (node: unknown, path: string): StructuralSchema => {
  const refuse = (why: string): never => {
    throw new TypeError(`Cannot make a structural schema of "${path === '' ? 'the root' : path}": ${why}`)
  }
  if (!isRecord(node)) return refuse('expected a schema')
  if (!TYPES.has(node['type'])) refuse('expected one type; unions and references are not structural')
  if (typeof node['description'] !== 'string' || node['description'] === '') refuse('expected a description')
  const result: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(node)) {
    if (keyword === 'additionalProperties' && value === false) continue
    if (keyword === 'maximum' && value === Number.MAX_SAFE_INTEGER) continue
    if (keyword === 'minimum' && value === Number.MIN_SAFE_INTEGER) continue
    if (keyword === 'properties' && isRecord(value)) {
      const properties = Object.entries(value).map(([name, field]) => [
        name,
        convert(field, path === '' ? name : `${path}.${name}`),
      ])
      result[keyword] = Object.fromEntries(properties)
    } else if (keyword === 'items')
      result[keyword] = convert({ description: node['description'], ...(isRecord(value) ? value : {}) }, `${path}[]`)
    else if (PLAIN.has(keyword)) result[keyword] = value
    else refuse(`the keyword ${keyword} is not supported`)
  }
  const type = node['type']
  const choices = node['enum']
  if (type === 'string' && choices === undefined && node['maxLength'] === undefined) refuse('expected maxLength')
  if (type === 'array' && node['maxItems'] === undefined) refuse('expected maxItems')
  if (type === 'array' && node['items'] === undefined) refuse('expected items')
  if (type === 'object' && node['properties'] === undefined) refuse('expected properties')
  // A numeric literal comes as a number.
  if (type === 'number' && Array.isArray(choices) && choices.every(Number.isInteger)) result['type'] = 'integer'
  return result as unknown as StructuralSchema
}

/**
 * Drops what a schema does not know and nulls that it does not allow, and fills in its defaults, at every depth; values of a wrong type stay for
 * validation to refuse. Pure, never throws.
 */
export const pruned = (schema: StructuralSchema, value: unknown): unknown => {
  const { properties, items } = schema
  if (properties !== undefined && isRecord(value)) {
    const kept: [string, unknown][] = []
    for (const [name, field] of Object.entries(properties)) {
      const own = Object.hasOwn(value, name) ? value[name] : undefined
      // As an API server does: null says nothing, except where it is allowed.
      const given = own === null && field['nullable'] !== true ? undefined : own
      const filled = given === undefined ? structuredClone(field.default) : pruned(field, given)
      if (filled !== undefined) kept.push([name, filled])
    }
    return Object.fromEntries(kept)
  }
  if (items !== undefined && Array.isArray(value)) return value.map(item => pruned(items, item))
  return value
}
