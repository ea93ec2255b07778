import { type DeletionRecord, deletionRecordSpec } from './deletion-record.ts'
import { type KindDefinition, resourceType } from './resource-type.ts'
import { DELETION_RECORD_RULES } from './rules.ts'

export const deletionRecordKind: KindDefinition<DeletionRecord> = {
  kind: 'DeletionRecord',
  plural: 'deletionrecords',
  shortName: 'sdel',
  description: 'What the operator leaves behind for an Environment that is gone, until the API server has read it',
  spec: deletionRecordSpec,
  rules: DELETION_RECORD_RULES,
  columns: [
    { name: 'Environment', jsonPath: '.spec.name' },
    { name: 'Cause', jsonPath: '.spec.cause' },
    { name: 'Retained', jsonPath: '.spec.retained', type: 'boolean' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Namespace', jsonPath: '.spec.namespace', wide: true },
    { name: 'Retained at', jsonPath: '.spec.retainedAt', wide: true },
    { name: 'Retained until', jsonPath: '.spec.retainedUntil', wide: true },
  ],
  selectableFields: ['.spec.uid', '.spec.organizationId'],
}

/** The DeletionRecord kind, for a ResourceStore. */
export const deletionRecordType = resourceType(deletionRecordKind)
