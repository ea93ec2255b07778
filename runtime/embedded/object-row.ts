import type { Resource, ResourceType } from '../../lib/model/resource.ts'

/** A row of `objects` or `changes` as the driver answers it. */
export interface ObjectRow {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
  readonly generation: string
  readonly created_at: Date
  readonly deleting_since: Date | null
  readonly labels: Readonly<Record<string, string>>
  readonly body: ObjectBody
}

/** What the `body` column holds: everything that no statement looks into. */
export interface ObjectBody {
  readonly finalizers: readonly string[]
  readonly annotations: Readonly<Record<string, string>>
  readonly ownerReferences: Resource['metadata']['ownerReferences']
  readonly lastManager?: string
  readonly spec: unknown
  readonly status?: unknown
}

/** The columns of an ObjectRow. */
export const OBJECT_COLUMNS = 'namespace, name, uid, version, generation, created_at, deleting_since, labels, body'

/** What `resource` columns hold: `environments.svc.internal`, the version of the API left out, so that it may move. */
export const resourceOf = (type: ResourceType<never>): string => `${type.plural}.${type.apiVersion.split('/')[0] ?? ''}`

/** A row as the resource it keeps. */
export const resourceFromRow = <R extends Resource>(type: ResourceType<R>, row: ObjectRow): R => {
  const { finalizers, annotations, ownerReferences, lastManager, spec, status } = row.body
  const resource: Resource = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: {
      name: row.name,
      namespace: row.namespace,
      uid: row.uid,
      resourceVersion: row.version,
      generation: Number(row.generation),
      creationTimestamp: row.created_at.toISOString(),
      ...(row.deleting_since === null ? {} : { deletionTimestamp: row.deleting_since.toISOString() }),
      finalizers,
      labels: row.labels,
      annotations,
      ownerReferences,
      ...(lastManager === undefined ? {} : { lastManager }),
    },
    spec,
    ...(status === undefined ? {} : { status }),
  }
  // The type's own rules judged what was written; older objects are read as they are.
  return resource as R
}

/** The `body` column of a resource. */
export const bodyOf = ({ metadata, spec, status }: Resource): string =>
  JSON.stringify({
    finalizers: metadata.finalizers,
    annotations: metadata.annotations,
    ownerReferences: metadata.ownerReferences,
    lastManager: metadata.lastManager,
    spec,
    status,
  } satisfies Record<keyof ObjectBody, unknown>)
