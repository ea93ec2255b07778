/** Read from the API server's audit log: which claims an operator deleted though nobody had asked for their environments' end. */
import { instanceName } from '../../crds/metadata.ts'
import type { AuditLine } from '../../testkit/kubernetes/audit-log.ts'

/** With its version: a test that plays a host alone, without environments, has none. */
const OPERATOR = /^svc-operator\/\d/
const ACCOUNT = /^system:serviceaccount:[^:]+:svc-operator$/
/** Who empties a namespace or removes a kind: that asks for the end of no environment. */
const SWEEPERS = /^system:(apiserver$|serviceaccount:kube-system:)/

const succeeded = ({ code }: AuditLine): boolean => code >= 200 && code < 300
const isByOperator = ({ user, userAgent }: AuditLine): boolean => OPERATOR.test(userAgent) || ACCOUNT.test(user)

/** Whether an operator deleted a claim by this. */
export const isDeletedByOperator = (line: AuditLine): boolean =>
  line.resource === 'persistentvolumeclaims' &&
  (line.verb === 'delete' || line.verb === 'deletecollection') &&
  succeeded(line) &&
  isByOperator(line)

/**
 * Every DELETE of a claim by an operator that no DELETE of its Environment came before, as `namespace/name`. A request for a
 * predecessor of the same name counts for nothing: it must be younger than the environment that the claim was made for, or than
 * the claim where that environment is older than the log. It may be older than the claim: an operator that has not heard of it
 * yet goes on building.
 */
export const claimsDeletedUnasked = (lines: readonly AuditLine[]): string[] => {
  const inOrder = lines.filter(succeeded).toSorted((a, b) => a.at - b.at)
  /** When, by `namespace/instance`; by `namespace/` when all that are in one were asked to go. */
  const asked = new Map<string, number>()
  /** When the environment that is there now was made, by `namespace/instance`. */
  const born = new Map<string, number>()
  /** What a request must be younger than, by claim. */
  const since = new Map<string, number>()
  const unasked: string[] = []
  for (const line of inOrder) {
    const { namespace, name, resource, verb, at } = line
    if (resource === 'environments' && verb === 'delete') asked.set(placeOf(namespace, name), at)
    else if (resource === 'environments' && verb === 'deletecollection' && !SWEEPERS.test(line.user))
      asked.set(`${namespace}/`, at)
    else if (resource === 'environments' && line.code === 201) born.set(placeOf(namespace, name), at)
    else if (resource !== 'persistentvolumeclaims') continue
    else if (line.code === 201) since.set(`${namespace}/${name}`, born.get(ownerOf(`${namespace}/${name}`)) ?? at)
    else if (verb === 'deletecollection' && isDeletedByOperator(line)) unasked.push(`${namespace}/*`)
    else if (isDeletedByOperator(line)) {
      const claim = `${namespace}/${name}`
      const askedAt = Math.max(asked.get(ownerOf(claim)) ?? -1, asked.get(`${namespace}/`) ?? -1)
      if (askedAt < (since.get(claim) ?? 0)) unasked.push(claim)
    }
  }
  return unasked
}

const placeOf = (namespace: string, name: string): string => {
  const [organizationId = '', projectId = '', environmentId = ''] = name.split('.')
  return `${namespace}/${instanceName({ organizationId, projectId, environmentId })}`
}
/** A claim is its instance's name and eight characters of the environment's uid. */
const ownerOf = (claim: string): string => claim.replace(/-[0-9a-f]{8}$/, '')
