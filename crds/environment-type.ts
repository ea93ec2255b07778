import { type Environment, environmentSpec, environmentStatus } from './environment.ts'
import { type KindDefinition, resourceType } from './resource-type.ts'
import { ENVIRONMENT_RULES } from './rules.ts'

const readyCondition = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`

export const environmentKind: KindDefinition<Environment> = {
  kind: 'Environment',
  plural: 'environments',
  shortName: 'senv',
  description: 'A Postgres database of its own: production, staging or a preview',
  spec: environmentSpec,
  status: environmentStatus,
  rules: ENVIRONMENT_RULES,
  columns: [
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Kind', jsonPath: '.spec.kind' },
    { name: 'Ready', jsonPath: readyCondition('status') },
    // Not of type date: that prints how long ago, and this lies ahead.
    { name: 'Expires', jsonPath: '.status.expiresAt' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Node', jsonPath: '.status.node', wide: true },
    { name: 'Data mode', jsonPath: '.spec.dataMode', wide: true },
    { name: 'Endpoint', jsonPath: '.status.endpoint.host', wide: true },
    { name: 'Reason', jsonPath: readyCondition('reason'), wide: true },
  ],
  selectableFields: ['.spec.organizationId', '.spec.projectId', '.spec.kind', '.status.phase'],
  admitDelete: ({ metadata, spec }) =>
    spec.deletionProtection === true
      ? `Cannot delete Environment "${metadata.name}": it is protected, set spec.deletionProtection to false first`
      : undefined,
}

/** The Environment kind, for a ResourceStore. */
export const environmentType = resourceType(environmentKind)
