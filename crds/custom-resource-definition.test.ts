import assert from 'node:assert/strict'
import type { Resource } from '../lib/model/resource.ts'
import { customResourceDefinition } from './custom-resource-definition.ts'
import { deletionRecordKind } from './deletion-record-type.ts'
import { environmentKind } from './environment-type.ts'
import type { KindDefinition } from './resource-type.ts'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly 'x-kubernetes-validations'?: readonly { rule: string; message: string; fieldPath?: string }[]
}

const rootSchema = (definition: KindDefinition<never>): Schema => {
  const crd = customResourceDefinition(definition as unknown as KindDefinition<Resource>) as {
    spec: { versions: { schema: { openAPIV3Schema: Schema } }[] }
  }
  return crd.spec.versions[0]!.schema.openAPIV3Schema
}

/** Every rule of a schema with the path of the field it names. */
const rulesIn = (schema: Schema, path = ''): { rule: string; field: string; schema: Schema }[] => [
  ...(schema['x-kubernetes-validations'] ?? []).map(({ rule, fieldPath = '' }) => ({
    rule,
    field: `${path}${fieldPath}`,
    schema,
  })),
  ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => rulesIn(inner, `${path}.${name}`)),
]

const fieldAt = (schema: Schema, path: string): Schema | undefined =>
  path
    .split('.')
    .filter(Boolean)
    .reduce<Schema | undefined>((inner, name) => inner?.properties?.[name], schema)

describe('customResourceDefinition', () => {
  for (const definition of [environmentKind, deletionRecordKind] as unknown as KindDefinition<never>[]) {
    it(`puts every rule of ${definition.kind} in one place, naming a field that exists`, () => {
      const root = rootSchema(definition)
      const placed = rulesIn(root)
      assert.deepEqual(placed.map(({ rule }) => rule).sort(), definition.rules.map(({ cel }) => cel).sort())
      for (const { field } of placed) assert.ok(fieldAt(root, field) !== undefined, field)
    })

    it(`asks has() for every optional field that a rule of ${definition.kind} reads`, () => {
      for (const { rule, schema } of rulesIn(rootSchema(definition))) {
        const required = new Set((schema as { required?: readonly string[] }).required ?? []).add('metadata')
        for (const [, whole, field] of rule.matchAll(/(?<!has\()\b((?:self|oldSelf)\.(\w+))/g))
          if (schema.properties?.[field!] !== undefined && !required.has(field!))
            assert.ok(rule.includes(`has(${whole}`), `${rule}: ${whole}`)
      }
    })
  }
})
