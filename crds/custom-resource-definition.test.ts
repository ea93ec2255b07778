import assert from 'node:assert/strict'
import type { Resource } from '../lib/model/resource.ts'
import { customResourceDefinition } from './custom-resource-definition.ts'
import { deletionRecordKind } from './deletion-record-type.ts'
import { environmentKind } from './environment-type.ts'
import type { KindDefinition } from './resource-type.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly 'x-kubernetes-validations'?: readonly { rule: string; message: string; fieldPath?: string }[]
}

interface Version {
  readonly schema: { readonly openAPIV3Schema: Schema }
  readonly additionalPrinterColumns: readonly { readonly name: string; readonly jsonPath: string }[]
}

const versionOf = (definition: KindDefinition<never>): Version => {
  const crd = customResourceDefinition(definition as unknown as KindDefinition<Resource>) as {
    spec: { versions: Version[] }
  }
  return crd.spec.versions[0]!
}
const rootSchema = (definition: KindDefinition<never>): Schema => versionOf(definition).schema.openAPIV3Schema

/** The paths of fields that say nothing of themselves: what `kubectl explain` would show empty. */
const undescribed = (schema: Schema, path = ''): string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [
    ...(path === '' && name === 'metadata' ? [] : (inner.description ?? '').length > 3 ? [] : [`${path}.${name}`]),
    ...undescribed(inner.items ?? inner, `${path}.${name}`),
  ])

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

    it(`describes every field of ${definition.kind}, and prints columns of fields that exist`, () => {
      const { schema, additionalPrinterColumns: columns } = versionOf(definition)
      assert.deepEqual(
        undescribed(schema.openAPIV3Schema).filter(path => !['.apiVersion', '.kind'].includes(path)),
        [],
      )
      assert.ok(columns.length >= 3)
      for (const { name, jsonPath } of columns) {
        // A filter on a list of conditions: the type must be a word of ours, which the types see to.
        const path = jsonPath.replace(/\[\?\(@\.type=="\w+"\)\]\.\w+$/, '')
        const known = path.startsWith('.metadata.') || fieldAt(schema.openAPIV3Schema, path) !== undefined
        assert.ok(known, `${name}: ${jsonPath}`)
      }
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
