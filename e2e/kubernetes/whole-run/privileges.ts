/** What an account may do, by the roles that are bound to it, as `group/resource verb`; and what it did, in the same words. */
import type { V1ClusterRole, V1ClusterRoleBinding, V1PolicyRule, V1Role, V1RoleBinding } from '@kubernetes/client-node'
import type { KubernetesObjects, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import type { AuditLine } from '../../../testkit/kubernetes/audit-log.ts'

const rbac = <O extends object>(kind: string, plural: string, clusterScoped: boolean): ObjectType<O> => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  plural,
  clusterScoped,
})
const CLUSTER_ROLE = rbac<V1ClusterRole>('ClusterRole', 'clusterroles', true)
const ROLE = rbac<V1Role>('Role', 'roles', false)
const CLUSTER_ROLE_BINDING = rbac<V1ClusterRoleBinding>('ClusterRoleBinding', 'clusterrolebindings', true)
const ROLE_BINDING = rbac<V1RoleBinding>('RoleBinding', 'rolebindings', false)

const wordsOf = ({ apiGroups = [], resources = [], verbs }: V1PolicyRule): string[] =>
  apiGroups.flatMap(group => resources.flatMap(resource => verbs.map(verb => `${group}/${resource} ${verb}`)))

/** Every privilege of a service account, by any binding anywhere. */
export const privilegesOf = async (
  objects: KubernetesObjects,
  account: { readonly namespace: string; readonly name: string },
): Promise<ReadonlySet<string>> => {
  const isBound = ({ subjects = [] }: V1RoleBinding | V1ClusterRoleBinding): boolean =>
    subjects.some(
      ({ kind, namespace, name }) =>
        kind === 'ServiceAccount' && namespace === account.namespace && name === account.name,
    )
  const bindings = [
    ...(await objects.list(CLUSTER_ROLE_BINDING)).items,
    ...(await objects.list(ROLE_BINDING)).items,
  ].filter(isBound)
  const roles = new Map(
    bindings.map(({ roleRef, metadata }) => [
      `${roleRef.kind} ${roleRef.kind === 'Role' ? metadata?.namespace : ''} ${roleRef.name}`,
      { type: roleRef.kind === 'Role' ? ROLE : CLUSTER_ROLE, namespace: metadata?.namespace ?? '', name: roleRef.name },
    ]),
  )
  const found = await Promise.all(
    [...roles.values()].map(async ({ type, namespace, name }) => {
      const role = await objects.get(type, { namespace: type === ROLE ? namespace : '', name })
      if (role === undefined) throw new Error(`The role ${name} is bound, and not there`)
      return (role.rules ?? []).flatMap(wordsOf)
    }),
  )
  return new Set(found.flat())
}

/** The privileges that one request took, in the words of rules: what is asked for is not always the verb that is checked. */
const takenBy = ({ group, resource, verb, code }: AuditLine): string[] => {
  const asked = `${group}/${resource} ${verb}`
  // A server-side apply that makes an object needs both; so does whoever binds a role that holds more than he does.
  const created = verb === 'create' || (verb === 'patch' && code === 201)
  return [
    asked,
    ...(created ? [`${group}/${resource} create`] : []),
    ...(created && resource === 'rolebindings' ? [`${group}/clusterroles bind`] : []),
  ]
}

/** What was done; what was refused does not count. */
export const usedPrivileges = (lines: readonly AuditLine[]): ReadonlySet<string> =>
  new Set(lines.filter(({ code }) => code !== 403 && code !== 401).flatMap(takenBy))
