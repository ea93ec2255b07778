/** What a project's namespace needs before the first environment in it, besides the network policy. Pure. */
import { ACCOUNTS, PROJECT_ROLES } from '../../../crds/admission-policies.ts'
import { LABELS, OPERATOR, POSTGRES_APP } from '../../../crds/metadata.ts'
import type { RoleBinding, ServiceAccount } from './object-types.ts'

/** What Postgres' pods run as: it has no token and may do nothing. */
export const SERVICE_ACCOUNT = POSTGRES_APP

/** Our two accounts, and what each may do in a project's namespace. */
const BINDINGS = [
  { account: ACCOUNTS.operator, role: PROJECT_ROLES.operator },
  { account: ACCOUNTS.apiServer, role: PROJECT_ROLES.apiServer },
] as const

const labels = { [LABELS.managedBy]: OPERATOR }

export const buildServiceAccount = (namespace: string): ServiceAccount => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: SERVICE_ACCOUNT, namespace, labels },
  automountServiceAccountToken: false,
})

export const buildRoleBindings = (namespace: string, operatorNamespace: string): RoleBinding[] =>
  BINDINGS.map(({ account, role }) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: account, namespace, labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: operatorNamespace }],
  }))
