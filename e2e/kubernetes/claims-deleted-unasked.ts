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

/**
 * Every DELETE of a claim by an operator that no DELETE of its Environment came before, as `namespace/name`. A request for a
 * predecessor of the same name counts for nothing: it must be younger than the claim.
 */
export const claimsDeletedUnasked = (lines: readonly AuditLine[]): string[] => {
  const inOrder = lines.filter(succeeded).toSorted((a, b) => a.at - b.at)
  /** When, by `namespace/instance`; by `namespace/` when all that are in one were asked to go. */
  const asked = new Map<string, number>()
  const made = new Map<string, number>()
  const unasked: string[] = []
  for (const line of inOrder) {
    const { namespace, name, resource, verb, at } = line
    if (resource === 'environments' && verb === 'delete') asked.set(placeOf(namespace, name), at)
    else if (resource === 'environments' && verb === 'deletecollection' && !SWEEPERS.test(line.user))
      asked.set(`${namespace}/`, at)
    else if (resource !== 'persistentvolumeclaims') continue
    else if (line.code === 201) made.set(`${namespace}/${name}`, at)
    else if (verb === 'deletecollection' && isByOperator(line)) unasked.push(`${namespace}/*`)
    else if (verb === 'delete' && isByOperator(line)) {
      const claim = `${namespace}/${name}`
      const askedAt = Math.max(asked.get(ownerOf(claim)) ?? -1, asked.get(`${namespace}/`) ?? -1)
      if (askedAt < (made.get(claim) ?? 0)) unasked.push(claim)
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
