/**
 * What a cluster refuses whoever asks, and what it refuses our own accounts: ValidatingAdmissionPolicies, each with its binding.
 * Rules of a resource type never see a DELETE, and RBAC cannot say "only in project namespaces"; these can.
 */
import { ANNOTATIONS, GROUP, LABELS } from './metadata.ts'

/** The accounts of the two programs, in the namespace that the platform is installed in. */
export const ACCOUNTS = { operator: 'svc-operator', apiServer: 'svc-apiserver' } as const

/** What each account may do in a project's namespace, bound there by the operator. */
export const PROJECT_ROLES = { operator: 'svc-operator-project', apiServer: 'svc-apiserver-project' } as const

/** Pods that run an import, and that the API server hands the source's credentials to: their names begin like this. */
const IMPORT_POD_PREFIX = 'svc-import-'

interface Policy {
  readonly name: string
  readonly description: string
  readonly rule: {
    readonly group: string
    readonly resource: string
    readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT')[]
  }
  /** Which requests it judges at all. */
  readonly when?: string
  /** What must hold, and what is said otherwise: both CEL. */
  readonly validations: readonly { readonly cel: string; readonly message: string }[]
}

const quoted = (text: string): string => `'${text}'`
const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(', ')}]`

/** CEL: whether an object's map, labels or annotations, has a key. */
const has = (map: string, key: string): string => `has(${map}) && ${quoted(key)} in ${map}`
const labelOf = (object: string, key: string): string => has(`${object}.metadata.labels`, key)

/** CEL: a namespace that belongs to a project. */
const ofProject = (namespace: string): string =>
  `${labelOf(namespace, LABELS.organization)} && ${labelOf(namespace, LABELS.project)}`

/** CEL: every label but one is in `b` as it is in `a`. */
const labelsKept = (a: string, b: string, except: string): string =>
  `!has(${a}.metadata.labels) || ${a}.metadata.labels.all(k, k == ${quoted(except)} || ` +
  `(has(${b}.metadata.labels) && k in ${b}.metadata.labels && ${b}.metadata.labels[k] == ${a}.metadata.labels[k]))`

const forEverybody: readonly Policy[] = [
  {
    name: 'svc-protected-environments',
    description:
      'Nobody deletes an Environment with deletionProtection. In a namespace that is being deleted already it lets them go: the volumes of what is to be retained stay',
    rule: { group: GROUP, resource: 'environments', operations: ['DELETE'] },
    validations: [
      {
        cel: `!has(oldObject.spec.deletionProtection) || !oldObject.spec.deletionProtection || namespaceObject.status.phase == 'Terminating'`,
        message: `'Cannot delete Environment "' + oldObject.metadata.name + '": spec.deletionProtection is true; set it to false first'`,
      },
    ],
  },
  {
    name: 'svc-protected-namespaces',
    description: `Nobody deletes a namespace with the label ${LABELS.protected}: the operator keeps it there while a protected environment or retained data is inside`,
    rule: { group: '', resource: 'namespaces', operations: ['DELETE'] },
    validations: [
      {
        cel: `!(${labelOf('oldObject', LABELS.protected)})`,
        message: `'Cannot delete namespace "' + oldObject.metadata.name + '": it holds protected environments or retained data (label ${LABELS.protected}); delete those first'`,
      },
    ],
  },
  {
    name: 'svc-resource-definitions',
    description: `Nobody deletes our resource definitions, and with them every Environment, unless they carry the annotation ${ANNOTATIONS.allowDeletion}`,
    rule: { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', operations: ['DELETE'] },
    when: `oldObject.spec.group == ${quoted(GROUP)}`,
    validations: [
      {
        cel: `${has('oldObject.metadata.annotations', ANNOTATIONS.allowDeletion)} && oldObject.metadata.annotations[${quoted(ANNOTATIONS.allowDeletion)}] == 'true'`,
        message: `'Cannot delete "' + oldObject.metadata.name + '": that deletes every object of this kind; set its annotation ${ANNOTATIONS.allowDeletion} to "true" first'`,
      },
    ],
  },
]

const forOperator = (systemNamespace: string, isOperator: string): readonly Policy[] => [
  {
    name: 'svc-operator-role-bindings',
    description:
      'The operator binds our two roles to our two accounts in namespaces of projects, and nothing else anywhere: what it may read there it may read nowhere else',
    rule: { group: 'rbac.authorization.k8s.io', resource: 'rolebindings', operations: ['CREATE', 'UPDATE'] },
    when: isOperator,
    validations: [
      {
        cel: ofProject('namespaceObject'),
        message: `'The operator may bind roles only in namespaces of projects; "' + request.namespace + '" has no labels ${LABELS.organization} and ${LABELS.project}'`,
      },
      {
        cel: `object.roleRef.kind == 'ClusterRole' && object.roleRef.name in ${list(Object.values(PROJECT_ROLES))}`,
        message: `'The operator may bind only ${Object.values(PROJECT_ROLES).join(' and ')}, not "' + object.roleRef.name + '"'`,
      },
      {
        cel:
          `has(object.subjects) && object.subjects.size() == 1 && object.subjects.all(s, s.kind == 'ServiceAccount' && ` +
          `has(s.namespace) && s.namespace == ${quoted(systemNamespace)} && ` +
          `s.name == (object.roleRef.name == ${quoted(PROJECT_ROLES.operator)} ? ${quoted(ACCOUNTS.operator)} : ${quoted(ACCOUNTS.apiServer)}))`,
        message: `'The operator may bind each of our roles only to the account of its name in "${systemNamespace}"'`,
      },
    ],
  },
  {
    name: 'svc-operator-namespaces',
    description: `The operator changes nothing of a namespace but its label ${LABELS.protected}: otherwise it could declare any namespace one of a project`,
    rule: { group: '', resource: 'namespaces', operations: ['CREATE', 'UPDATE'] },
    when: isOperator,
    validations: [
      {
        cel: `oldObject != null && ${ofProject('oldObject')}`,
        message: `'The operator may change only namespaces of projects, not "' + object.metadata.name + '"'`,
      },
      {
        cel: `oldObject != null && (${labelsKept('object', 'oldObject', LABELS.protected)}) && (${labelsKept('oldObject', 'object', LABELS.protected)})`,
        message: `'The operator may change no label of namespace "' + object.metadata.name + '" but ${LABELS.protected}'`,
      },
    ],
  },
]

const forApiServer = (isApiServer: string): readonly Policy[] => [
  {
    name: 'svc-apiserver-namespaces',
    description:
      'The API server makes namespaces of projects, under restricted Pod Security, and deletes no others; it changes none: otherwise it could declare any namespace one of a project',
    rule: { group: '', resource: 'namespaces', operations: ['CREATE', 'UPDATE', 'DELETE'] },
    when: isApiServer,
    validations: [
      {
        cel: `request.operation != 'UPDATE' || oldObject.metadata.?labels == object.metadata.?labels`,
        message: `'The API server may change no label of namespace "' + object.metadata.name + '"'`,
      },
      {
        cel: `request.operation != 'CREATE' || (object.metadata.name.startsWith('svc-') && ${ofProject('object')})`,
        message: `'The API server may make only namespaces of projects: svc-… with the labels ${LABELS.organization} and ${LABELS.project}'`,
      },
      {
        cel: `request.operation != 'CREATE' || (${labelOf('object', 'pod-security.kubernetes.io/enforce')} && object.metadata.labels['pod-security.kubernetes.io/enforce'] == 'restricted')`,
        message: `'The API server may make only namespaces under restricted Pod Security'`,
      },
      {
        cel: `request.operation != 'DELETE' || (${ofProject('oldObject')})`,
        message: `'The API server may delete only namespaces of projects, not "' + oldObject.metadata.name + '"'`,
      },
    ],
  },
  {
    name: 'svc-apiserver-attach',
    description: 'The API server attaches only to the pods of imports, to hand them the credentials of their source',
    rule: { group: '', resource: 'pods/attach', operations: ['CONNECT'] },
    when: isApiServer,
    validations: [
      {
        cel: `${ofProject('namespaceObject')} && request.name.startsWith(${quoted(IMPORT_POD_PREFIX)})`,
        message: `'The API server may attach only to the pods of imports, not to "' + request.name + '"'`,
      },
    ],
  },
]

const objectsOf = ({ name, description, rule, when, validations }: Policy): readonly object[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name, annotations: { 'kubernetes.io/description': description } },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [rule.group], apiVersions: ['*'], resources: [rule.resource], operations: rule.operations },
        ],
      },
      ...(when !== undefined && { matchConditions: [{ name: 'concerned', expression: when }] }),
      validations: validations.map(({ cel, message }) => ({
        expression: cel,
        messageExpression: message,
        reason: 'Forbidden',
      })),
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  },
]

/** Every policy with its binding, for a platform in that namespace. */
export const admissionPolicies = (systemNamespace: string): readonly object[] => {
  const is = (account: string): string =>
    `request.userInfo.username == ${quoted(`system:serviceaccount:${systemNamespace}:${account}`)}`
  return [
    ...forEverybody,
    ...forOperator(systemNamespace, is(ACCOUNTS.operator)),
    ...forApiServer(is(ACCOUNTS.apiServer)),
  ].flatMap(objectsOf)
}
