import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { stringify } from 'yaml'
import { atEnd } from '../testkit/at-end.ts'
import { apiCluster, type TestCluster } from '../testkit/kubernetes/cluster.ts'
import { kubectlOn } from '../testkit/kubernetes/kubectl.ts'
import { ACCOUNTS, admissionPolicies, PROJECT_ROLES } from './admission-policies.ts'
import { ANNOTATIONS, LABELS, projectNamespace } from './metadata.ts'

const PROJECT_LABELS = { [LABELS.organization]: 'acme', [LABELS.project]: 'shop' }

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: { readonly policyName?: string }
}

/** The shipped policies under names of their own, so that this run meets no other's. */
const renamed = (objects: readonly object[], suffix: string): readonly object[] =>
  (objects as readonly Manifest[]).map(object => ({
    ...object,
    metadata: { ...object.metadata, name: `${object.metadata.name}-${suffix}` },
    spec: {
      ...object.spec,
      ...(object.spec.policyName !== undefined && { policyName: `${object.spec.policyName}-${suffix}` }),
    },
  }))

const yaml = (...objects: readonly object[]): string => objects.map(object => stringify(object)).join('---\n')

const environment = (namespace: string, id: string, spec: object = {}) => ({
  apiVersion: 'svc.internal/v1alpha1',
  kind: 'Environment',
  // Paused: whatever operator other tests bring leaves it alone.
  metadata: {
    name: `acme.shop.${id}`,
    namespace,
    labels: { case: id },
    annotations: { [ANNOTATIONS.paused]: 'true' },
  },
  spec: { organizationId: 'acme', projectId: 'shop', environmentId: id, kind: 'staging', ...spec },
})

describe('the admission policies', function () {
  this.timeout(120_000)
  const suffix = randomBytes(4).toString('hex')
  let cluster: TestCluster
  let kubectl: ReturnType<typeof kubectlOn>
  let system: string
  let project: string
  let elsewhere: string
  const as = (account: string): string => `--as=system:serviceaccount:${system}:${account}`
  const apply = (object: object, ...flags: string[]) => kubectl.run(['apply', '-f', '-', ...flags], yaml(object))

  /**
   * What was tried is refused by that policy, with a message; a policy that was just made is in force within seconds.
   * Where the shipped ones are in force already, one of those may say it first.
   */
  const refuses = async (policy: string, attempt: () => ReturnType<typeof kubectl.run>, message: RegExp) => {
    for (const end = Date.now() + 30_000; ; await new Promise(resolve => setTimeout(resolve, 100))) {
      const { code, stdout, stderr } = await attempt()
      if (stderr.includes(`'${policy}-${suffix}'`) || stderr.includes(`'${policy}'`)) {
        assert.notEqual(code, 0)
        assert.match(stderr, message)
        return
      }
      if (Date.now() > end) assert.fail(`${policy} did not refuse: ${stdout}${stderr}`)
    }
  }
  const passes = async (attempt: ReturnType<typeof kubectl.run>) => {
    const { code, stdout, stderr } = await attempt
    assert.equal(code, 0, stdout + stderr)
  }

  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
    kubectl = kubectlOn(cluster.kubeconfig)
    system = await cluster.namespace('pack')
    project = await cluster.namespace('pack', PROJECT_LABELS)
    elsewhere = await cluster.namespace('pack')
    // RBAC shall not be what refuses.
    const admins = Object.values(ACCOUNTS).map(name => ({ kind: 'ServiceAccount', name, namespace: system }))
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `t-pack-${suffix}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: admins,
    }
    const manifests = yaml(...renamed(admissionPolicies(system), suffix), binding)
    atEnd(async () => {
      await kubectl.must(['delete', '--ignore-not-found', '-f', '-'], manifests)
    })
    await kubectl.must(['apply', '-f', '-'], manifests)
    // What is tried further down must not pass only because they are not in force yet.
    await passes(apply(environment(project, 'probe', { deletionProtection: true })))
    const probe = () => kubectl.run(['-n', project, 'delete', 'environment', 'acme.shop.probe', '--dry-run=server'])
    await refuses('svc-protected-environments', probe, /deletionProtection is true/)
  })

  describe('on Environments', () => {
    it('refuse to delete a protected one, and let an unprotected one go', async () => {
      await passes(apply(environment(project, 'kept', { deletionProtection: true })))
      await passes(apply(environment(project, 'open', { deletionProtection: false })))
      await passes(apply(environment(project, 'silent')))
      const one = () => kubectl.run(['-n', project, 'delete', 'environment', 'acme.shop.kept', '--wait=false'])
      await refuses('svc-protected-environments', one, /"acme\.shop\.kept": spec\.deletionProtection is true/)
      for (const id of ['open', 'silent'])
        await passes(kubectl.run(['-n', project, 'delete', 'environment', `acme.shop.${id}`]))
    })

    it('refuse to delete it within a collection too', async () => {
      await passes(apply(environment(project, 'of-many', { deletionProtection: true })))
      const path = `/apis/svc.internal/v1alpha1/namespaces/${project}/environments`
      await assert.rejects(
        cluster.api.call({ method: 'DELETE', path, query: { labelSelector: 'case=of-many' } }),
        /deletionProtection is true/,
      )
      await passes(kubectl.run(['-n', project, 'get', 'environment', 'acme.shop.of-many']))
    })

    it('let it go once the protection is taken back', async () => {
      await passes(apply(environment(project, 'was-kept', { deletionProtection: true })))
      await passes(apply(environment(project, 'was-kept', { deletionProtection: false })))
      await passes(kubectl.run(['-n', project, 'delete', 'environment', 'acme.shop.was-kept']))
    })

    it('let a protected one go in a namespace that is being deleted', async () => {
      const ending = await cluster.namespace('pack', PROJECT_LABELS)
      await passes(apply(environment(ending, 'ends', { deletionProtection: true })))
      await passes(kubectl.run(['delete', 'namespace', ending, '--timeout=60s']))
    })
  })

  describe('on namespaces', () => {
    it('refuse to delete one with the label, whatever its value is, and let it go without', async () => {
      const namespace = await cluster.namespace('pack', { [LABELS.protected]: '' })
      const attempt = () => kubectl.run(['delete', 'namespace', namespace, '--wait=false'])
      await refuses('svc-protected-namespaces', attempt, /holds protected environments or retained data/)
      await passes(kubectl.run(['label', 'namespace', namespace, `${LABELS.protected}-`]))
      await passes(attempt())
    })
  })

  describe('on our resource definitions', () => {
    const definition = 'deletionrecords.svc.internal'
    const annotate = (value: string) =>
      kubectl.run(['annotate', '--overwrite', 'crd', definition, `${ANNOTATIONS.allowDeletion}${value}`])
    // Never really: other tests use them.
    const attempt = () => kubectl.run(['delete', 'crd', definition, '--dry-run=server'])

    it('refuse to delete one without the annotation, or with another value, and let it go with it', async () => {
      await refuses('svc-resource-definitions', attempt, /deletes every object of this kind/)
      await passes(annotate('=yes'))
      await refuses('svc-resource-definitions', attempt, /to "true" first/)
      try {
        await passes(annotate('=true'))
        await passes(attempt())
      } finally {
        await passes(annotate('-'))
      }
    })

    it('let those of others be deleted', async () => {
      const plural = `things${suffix}`
      const foreign = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.example.org` },
        spec: {
          group: 'example.org',
          scope: 'Namespaced',
          names: { plural, singular: `thing${suffix}`, kind: `Thing${suffix}`, listKind: `Thing${suffix}List` },
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
        },
      }
      await passes(apply(foreign))
      await passes(kubectl.run(['delete', 'crd', foreign.metadata.name]))
    })
  })

  describe('on RoleBindings that the operator makes', () => {
    const binding = (namespace: string, role: string, subjects: readonly object[], kind = 'ClusterRole') => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: `of-${role}-${randomBytes(4).toString('hex')}`, namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: role },
      subjects,
    })
    const account = (name: string, namespace = system) => ({ kind: 'ServiceAccount', name, namespace })
    const bind = (object: object) => apply(object, as(ACCOUNTS.operator))

    it('let it bind each of our roles to the account of its name in a namespace of a project', async () => {
      for (const key of ['operator', 'apiServer'] as const)
        await passes(bind(binding(project, PROJECT_ROLES[key], [account(ACCOUNTS[key])])))
    })

    const refused: readonly [string, () => object, RegExp][] = [
      [
        'in any other namespace',
        () => binding(elsewhere, PROJECT_ROLES.operator, [account(ACCOUNTS.operator)]),
        /has no labels/,
      ],
      ['of another role', () => binding(project, 'cluster-admin', [account(ACCOUNTS.operator)]), /not "cluster-admin"/],
      [
        'of a role of the namespace that is called like ours',
        () => binding(project, PROJECT_ROLES.operator, [account(ACCOUNTS.operator)], 'Role'),
        /may bind only/,
      ],
      [
        'to another account',
        () => binding(project, PROJECT_ROLES.operator, [account('default')]),
        /account of its name/,
      ],
      [
        'of the operator’s role to the API server',
        () => binding(project, PROJECT_ROLES.operator, [account(ACCOUNTS.apiServer)]),
        /account of its name/,
      ],
      [
        'to an account of its name elsewhere',
        () => binding(project, PROJECT_ROLES.operator, [account(ACCOUNTS.operator, project)]),
        /account of its name/,
      ],
      [
        'to somebody else too',
        () => binding(project, PROJECT_ROLES.operator, [account(ACCOUNTS.operator), account('default')]),
        /account of its name/,
      ],
      [
        'to everybody',
        () =>
          binding(project, PROJECT_ROLES.operator, [
            { kind: 'Group', name: 'system:authenticated', apiGroup: 'rbac.authorization.k8s.io' },
          ]),
        /account of its name/,
      ],
    ]
    for (const [what, object, message] of refused)
      it(`refuse one ${what}`, () => refuses('svc-operator-role-bindings', () => bind(object()), message))

    it('refuse to widen one that it made', async () => {
      const made = binding(project, PROJECT_ROLES.apiServer, [account(ACCOUNTS.apiServer)])
      await passes(bind(made))
      const widened = { ...made, subjects: [account(ACCOUNTS.apiServer), account('default')] }
      await refuses('svc-operator-role-bindings', () => bind(widened), /account of its name/)
    })

    it('say nothing to anybody else', () =>
      passes(apply(binding(elsewhere, 'view', [account('default')]), as('somebody'), '--as-group=system:masters')))
  })

  describe('on namespaces that our accounts touch', () => {
    const label = (namespace: string, value: string, account: string) =>
      kubectl.run(['label', '--overwrite', 'namespace', namespace, value, as(account)])

    it('let the operator set and take back the protection of a project’s namespace', async () => {
      await passes(label(project, `${LABELS.protected}=true`, ACCOUNTS.operator))
      await passes(label(project, `${LABELS.protected}-`, ACCOUNTS.operator))
    })

    it('refuse any other label to the operator: no namespace becomes a project’s by its hand', async () => {
      const declare = () => label(elsewhere, `${LABELS.project}=shop`, ACCOUNTS.operator)
      await refuses('svc-operator-namespaces', declare, /only namespaces of projects/)
      const protect = () => label(elsewhere, `${LABELS.protected}=true`, ACCOUNTS.operator)
      await refuses('svc-operator-namespaces', protect, /only namespaces of projects/)
      for (const value of [`${LABELS.project}=other`, `${LABELS.project}-`, 'new=label'])
        await refuses('svc-operator-namespaces', () => label(project, value, ACCOUNTS.operator), /may change no label/)
    })

    const namespace = (name: string, labels: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    })
    const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    const create = (object: object, account: string) => apply(object, as(account), '--dry-run=server')
    // Of a project that no other test has a namespace of.
    const name = projectNamespace('acme', `shop-${suffix}`)
    const labelsOfIt = { ...PROJECT_LABELS, [LABELS.project]: `shop-${suffix}` }

    it('let the API server make a project’s namespace, and refuse any other', async () => {
      const refusal = (labels: Record<string, string>, message: RegExp, called = name) =>
        refuses('svc-apiserver-namespaces', () => create(namespace(called, labels), ACCOUNTS.apiServer), message)
      await passes(create(namespace(name, { ...labelsOfIt, ...restricted }), ACCOUNTS.apiServer))
      await refusal(restricted, /only namespaces of projects/)
      await refusal(labelsOfIt, /restricted Pod Security/)
      await refusal({ ...labelsOfIt, 'pod-security.kubernetes.io/enforce': 'privileged' }, /restricted/)
      await refusal({ ...labelsOfIt, ...restricted }, /svc-…/, 'monitoring')
    })

    it('refuse the operator to make one', () =>
      refuses(
        'svc-operator-namespaces',
        () => create(namespace(name, { ...labelsOfIt, ...restricted }), ACCOUNTS.operator),
        /only namespaces of projects/,
      ))

    it('refuse the API server to declare a namespace a project’s, or to delete another one', async () => {
      const declare = () => label(elsewhere, `${LABELS.project}=shop`, ACCOUNTS.apiServer)
      await refuses('svc-apiserver-namespaces', declare, /may change no label/)
      const remove = (which: string) => () =>
        kubectl.run(['delete', 'namespace', which, '--dry-run=server', as(ACCOUNTS.apiServer)])
      await refuses('svc-apiserver-namespaces', remove(elsewhere), /may delete only namespaces of projects/)
      await passes(remove(project)())
    })
  })

  describe('on attaching to pods', () => {
    const attach = (namespace: string, pod: string, account: string) => () =>
      kubectl.run(['-n', namespace, 'attach', pod, '--pod-running-timeout=1s', as(account)])
    const pod = (namespace: string, name: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { containers: [{ name: 'main', image: 'none' }], nodeName: 'nowhere' },
    })
    /** kubectl attaches only to what it believes to run. */
    const running = async (namespace: string, name: string) => {
      await passes(apply(pod(namespace, name)))
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
      await cluster.api.call({
        method: 'PATCH',
        path: `/api/v1/namespaces/${namespace}/pods/${name}/status`,
        contentType: 'application/merge-patch+json',
        body: { status },
      })
    }

    it('refuse it to the API server but for the pods of imports in a project’s namespace', async () => {
      await running(project, 'other')
      await running(project, 'svc-import-1')
      await running(elsewhere, 'svc-import-1')
      const refusal = /only to the pods of imports/
      await refuses('svc-apiserver-attach', attach(project, 'other', ACCOUNTS.apiServer), refusal)
      await refuses('svc-apiserver-attach', attach(elsewhere, 'svc-import-1', ACCOUNTS.apiServer), refusal)
      // Admission lets these pass; then there is no kubelet to attach to.
      for (const attempt of [
        attach(project, 'svc-import-1', ACCOUNTS.apiServer),
        attach(project, 'other', ACCOUNTS.operator),
      ]) {
        const { stderr } = await attempt()
        assert.doesNotMatch(stderr, /denied request/)
        assert.match(stderr, /nowhere|not found|unable to upgrade/i)
      }
    })
  })
})
