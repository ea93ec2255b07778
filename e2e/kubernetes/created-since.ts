/** Read from the API server's audit log: what came to be in a namespace after a moment. */
import type { AuditLine } from '../../testkit/kubernetes/audit-log.ts'

/** What tells a story, what the cluster itself keeps in every namespace, and a StatefulSet's own notes. */
const BESIDE = new Set([
  ...['events', 'leases', 'configmaps', 'serviceaccounts', 'endpoints', 'endpointslices'],
  'controllerrevisions',
])

/** When the deletion of an object was first asked for; undefined: never. */
export const askedToGoAt = (
  lines: readonly AuditLine[],
  asked: Pick<AuditLine, 'resource' | 'namespace' | 'name'>,
): number | undefined =>
  lines
    .filter(
      ({ verb, code, resource, namespace, name }) =>
        code < 300 &&
        resource === asked.resource &&
        namespace === asked.namespace &&
        (verb === 'deletecollection' || (verb === 'delete' && name === asked.name)),
    )
    .map(({ at }) => at)
    .sort((a, b) => a - b)
    .at(0)

/** Every object that anybody made in a namespace after that moment, as `resource name by whom`. */
export const createdSince = (lines: readonly AuditLine[], where: string, moment: number): string[] =>
  lines
    .filter(
      ({ namespace, code, resource, at }) =>
        // 201 answers what made an object, server-side apply included; a subresource is none.
        namespace === where && code === 201 && !resource.includes('/') && !BESIDE.has(resource) && at > moment,
    )
    .map(({ resource, name, userAgent }) => `${resource} ${name} by ${userAgent.split(/[ /]/)[0]}`)
