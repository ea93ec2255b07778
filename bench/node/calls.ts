/** What our programs change on the cluster's API server, from its audit log. */
import { RELEASE_NAMESPACE } from '../../e2e/kubernetes/installation.ts'
import type { AuditLine } from '../../testkit/kubernetes/audit-log.ts'

const account = (name: string): string => `system:serviceaccount:${RELEASE_NAMESPACE}:${name}`
const OPERATOR = account('svc-operator')
const API_SERVER = account('svc-apiserver')
const CHANGES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])

/** `verb resource`, each call, refused ones too; leases and events left out. */
export interface Calls {
  readonly operator: readonly string[]
  readonly apiServer: readonly string[]
  readonly events: number
}

/** Those that came between two times, epoch milliseconds. */
export const callsBetween = (lines: readonly AuditLine[], from: number, to: number): Calls => {
  const changes = lines.filter(
    ({ verb, resource, at }) => CHANGES.has(verb) && resource !== 'leases' && from <= at && at < to,
  )
  const isEvent = ({ resource }: AuditLine): boolean => resource === 'events'
  const of = (user: string): readonly string[] =>
    changes.filter(line => line.user === user && !isEvent(line)).map(toldOf)
  return {
    operator: of(OPERATOR),
    apiServer: of(API_SERVER),
    events: changes.filter(line => [OPERATOR, API_SERVER].includes(line.user) && isEvent(line)).length,
  }
}

const toldOf = ({ verb, resource, code }: AuditLine): string =>
  `${verb} ${resource}${code < 400 ? '' : ` (answered ${code})`}`

/** `2 patch environments/status, create services`. */
export const summed = (changes: readonly string[]): string => {
  const counts = new Map<string, number>()
  for (const change of changes) counts.set(change, (counts.get(change) ?? 0) + 1)
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([change, count]) => (count === 1 ? change : `${count} ${change}`))
    .join(', ')
}
