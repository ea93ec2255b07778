/** A kind's definition → the CustomResourceDefinition that a Kubernetes cluster is given. */
import type { Resource } from '../lib/model/resource.ts'
import { GROUP, VERSION } from './metadata.ts'
import { type KindDefinition, type PrinterColumn, schemasOf } from './resource-type.ts'
import type { Rule } from './rules.ts'

/** The schema with the rules of its scope, and of the scopes below it. */
const withRules = <R extends Resource>(schema: object, rules: readonly Rule<R>[], scope: string): object => {
  const own = rules.filter(rule => rule.scope === scope)
  const properties = 'properties' in schema ? Object.entries(schema.properties as Record<string, object>) : []
  const inner = scope === '' ? '' : `${scope}.`
  return {
    ...schema,
    ...(properties.length > 0 && {
      properties: Object.fromEntries(
        properties.map(([name, field]) => [name, withRules(field, rules, `${inner}${name}`)]),
      ),
    }),
    ...(own.length > 0 && {
      'x-kubernetes-validations': own.map(({ cel, message, field }) => ({
        rule: cel,
        message,
        // Only fields of the schema can be named, and the root knows no metadata.name.
        ...(scope !== '' && field !== scope && { fieldPath: field.slice(scope.length) }),
      })),
    }),
  }
}

const printerColumn = ({ name, jsonPath, type = 'string', wide = false }: PrinterColumn): object => ({
  name,
  type,
  jsonPath,
  ...(wide && { priority: 1 }),
})

/** The whole CustomResourceDefinition, as a plain object. */
export const customResourceDefinition = <R extends Resource>(definition: KindDefinition<R>): object => {
  const { kind, plural, shortName, description, rules, columns, selectableFields } = definition
  const { spec, status } = schemasOf(definition)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        // Nothing that a kind of Kubernetes is called: kubectl takes a category before a short name, and `svc` are Services.
        categories: ['svc-all'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          ...(status && { subresources: { status: {} } }),
          additionalPrinterColumns: columns.map(printerColumn),
          selectableFields: selectableFields.map(jsonPath => ({ jsonPath })),
          schema: {
            openAPIV3Schema: withRules(
              {
                type: 'object',
                description,
                required: ['spec'],
                properties: {
                  apiVersion: { type: 'string', description: 'Version of the schema of this object' },
                  kind: { type: 'string', description: 'Kind of this object' },
                  metadata: { type: 'object' },
                  spec,
                  ...(status && { status }),
                },
              },
              rules,
              '',
            ),
          },
        },
      ],
    },
  }
}
