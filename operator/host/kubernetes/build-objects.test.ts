import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { ENVIRONMENT_KINDS, type EnvironmentKind } from '../../../lib/model/environment.ts'
import { sized } from '../../../testkit/full.ts'
import type { InstanceRef } from '../host.ts'
import { buildClaim } from './build-claim.ts'
import { allowsNewData, buildFilesSecret, filesIn } from './build-files-secret.ts'
import { buildExposurePolicy, buildNetworkPolicy } from './build-network-policy.ts'
import { buildRoleBindings, buildServiceAccount } from './build-project-objects.ts'
import { buildService } from './build-service.ts'
import { buildStatefulSet } from './build-stateful-set.ts'
import { DEFAULT_HOST_SETTINGS, type KubernetesHostSettings } from './host-settings.ts'
import { instanceNames } from './instance-names.ts'
import type { StatefulSet } from './object-types.ts'
import { startSettings } from './server-settings.ts'
import { figuresText, type PlacedSpec, parseWanted, type Wanted, wantedText } from './wanted.ts'

const REF: InstanceRef = {
  key: { namespace: 'svc-acme-app-1', name: 'acme.app.main' },
  uid: '0a1b2c3d-0000-4000-8000-000000000001',
  path: { organizationId: 'acme', projectId: 'app', environmentId: 'main' },
}
const SPEC: PlacedSpec = {
  cpu: '500m',
  memoryBytes: 256 * 2 ** 20,
  storageBytes: 2 ** 30,
  maxConnections: 50,
  image: 'svc-postgres:17',
  kind: 'preview',
}
const CLAIM: Parameters<typeof buildClaim>[1] = {
  storageBytes: 2 ** 30,
  storageClass: undefined,
  lineage: 'template:x',
  initialized: false,
  deletionPolicy: undefined,
}
const wanted = (changes: Partial<Wanted> = {}): Wanted => ({
  running: true,
  spec: SPEC,
  ...changes,
})
const build = (what: Wanted, settings: KubernetesHostSettings = DEFAULT_HOST_SETTINGS): StatefulSet =>
  buildStatefulSet(instanceNames(REF), what, startSettings(what.spec, instanceNames(REF).name), settings)
const podOf = (statefulSet: StatefulSet) => statefulSet.spec!.template.spec!

describe('the objects of an instance', () => {
  const names = instanceNames(REF)

  it('are named by the id, and by the uid too where they hold data or secrets', () => {
    assert.match(names.name, /^main-[0-9a-f]{10}-1$/)
    assert.equal(names.claim, `${names.name}-0a1b2c3d`)
    assert.equal(names.files, `${names.claim}-tls`)
    assert.equal(names.pod, `${names.name}-0`)
    assert.equal(names.host, `${names.name}.svc-acme-app-1.svc`)
  })

  it('fit into names and labels at their longest', () => {
    const long = 'x'.repeat(64)
    const path = { organizationId: long, projectId: long, environmentId: long }
    const longest = instanceNames({ ...REF, key: { ...REF.key, name: `${long}.${long}.${long}` }, path })
    for (const name of [longest.name, longest.pod, longest.claim, longest.files]) assert.ok(name.length <= 63, name)
    for (const value of Object.values(longest.labels))
      assert.match(value, /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/)
  })

  it('all but the claim go with their Environment', () => {
    const owner = [names.owner]
    assert.deepEqual(build(wanted()).metadata?.ownerReferences, owner)
    assert.deepEqual(buildService(names, { type: 'None' }).metadata?.ownerReferences, owner)
    const files = { certificate: 'c', key: 'k', authorities: 'a', settings: 's' }
    assert.deepEqual(buildFilesSecret(names, files, false).metadata?.ownerReferences, owner)
    const claim = buildClaim(names, CLAIM)
    assert.equal(claim.metadata?.ownerReferences, undefined)
  })
})

describe('the StatefulSet', () => {
  it('runs one pod or none, is restarted by nobody else, and never deletes a claim', () => {
    const { spec } = build(wanted())
    assert.equal(spec?.replicas, 1)
    assert.equal(build(wanted({ running: false })).spec?.replicas, 0)
    assert.deepEqual(spec.updateStrategy, { type: 'OnDelete' })
    assert.equal(spec.revisionHistoryLimit, 0)
    assert.equal(spec.volumeClaimTemplates, undefined)
    assert.deepEqual(spec.persistentVolumeClaimRetentionPolicy, { whenDeleted: 'Retain', whenScaled: 'Retain' })
  })

  it('gives its pod what restricted Pod Security asks for, and nothing of the cluster', () => {
    const pod = podOf(build(wanted()))
    assert.equal(pod.automountServiceAccountToken, false)
    assert.equal(pod.enableServiceLinks, false)
    assert.equal(pod.serviceAccountName, 'svc-postgres')
    assert.deepEqual(pod.securityContext, {
      runAsNonRoot: true,
      runAsUser: 999,
      runAsGroup: 999,
      fsGroup: 999,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    })
    assert.deepEqual(pod.containers[0]?.securityContext, {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('may take an hour to start, is never killed while it recovers, and writes out before it stops', () => {
    const [container] = podOf(build(wanted())).containers
    assert.equal(container?.startupProbe?.periodSeconds, 1)
    assert.ok(container.startupProbe.failureThreshold! >= 3600)
    assert.deepEqual(container.livenessProbe?.exec?.command, ['svc-probe', 'alive'])
    assert.deepEqual(container.lifecycle?.preStop?.exec?.command, ['svc-probe', 'checkpoint', '60'])
  })

  it('gives production half an hour to stop and a preview two minutes', () => {
    const grace = (kind: PlacedSpec['kind']) =>
      podOf(build(wanted({ spec: { ...SPEC, kind } }))).terminationGracePeriodSeconds
    assert.deepEqual([grace('production'), grace('preview')], [1800, 120])
  })

  it('asks its Secret at each start whether an empty volume may be initialized; where nothing says so it may not', () => {
    const [container] = podOf(build(wanted())).containers
    assert.deepEqual(container?.env, [
      {
        name: 'SVC_NEW_DATA',
        valueFrom: { secretKeyRef: { name: instanceNames(REF).files, key: 'new-data', optional: true } },
      },
    ])
  })

  it('passes placement through', () => {
    const placement = {
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'databases', operator: 'Exists' }],
      priorityClassName: 'svc-production',
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
    }
    const settings = {
      ...DEFAULT_HOST_SETTINGS,
      placement: { ...DEFAULT_HOST_SETTINGS.placement, preview: placement },
      imagePullSecrets: ['registry'],
    }
    const pod = podOf(build(wanted(), settings))
    for (const [name, value] of Object.entries(placement)) assert.deepEqual(Reflect.get(pod, name), value)
    assert.deepEqual(pod.imagePullSecrets, [{ name: 'registry' }])
    assert.equal(podOf(build(wanted({ spec: { ...SPEC, kind: 'production' } }), settings)).nodeSelector, undefined)
  })

  it('reserves a part of the limits', () => {
    const { resources } = podOf(build(wanted())).containers[0]!
    assert.deepEqual(resources, {
      limits: { cpu: '500m', memory: '268435456' },
      requests: { cpu: '50m', memory: '268435456' },
    })
  })

  it('changes the figures that a pod is compared by for everything that needs a restart, and for nothing else', () => {
    const text = figuresText(SPEC)
    for (const [name, value] of [
      ['cpu', '1'],
      ['memoryBytes', 2 ** 30],
      ['maxConnections', 51],
      ['image', 'svc-postgres:17.1'],
    ] as const)
      assert.notEqual(figuresText({ ...SPEC, [name]: value }), text, name)
    assert.equal(figuresText({ ...SPEC, storageBytes: 2 ** 31 }), text)
    assert.equal(figuresText({ ...SPEC, kind: 'production' }), text)
  })

  it('holds no string that Kubernetes would expand or a shell would read, whatever the figures are', () => {
    fc.assert(
      fc.property(
        fc.record({
          image: fc.string({ minLength: 1 }),
          cpu: fc.constantFrom('1m', '500m', '64'),
          memoryBytes: fc.integer({ min: 2 ** 20, max: 2 ** 40 }),
          storageBytes: fc.integer({ min: 2 ** 20, max: 2 ** 45 }),
          maxConnections: fc.integer({ min: 5, max: 5000 }),
        }),
        figures => {
          const what = wanted({ spec: { ...SPEC, ...figures } })
          const [container] = podOf(build(what)).containers
          for (const argument of container!.args!) assert.match(argument, /^(-c|[a-z_.]+=[A-Za-z0-9_./*-]*)$/)
          assert.equal(container!.command, undefined)
          assert.deepEqual(parseWanted(wantedText(what)), what)
        },
      ),
      { numRuns: sized(100, 2000) },
    )
  })

  it('makes the argument of any setting literal: what Kubernetes would expand arrives as it was written', () => {
    const name = instanceNames(REF)
    const [container] = podOf(
      buildStatefulSet(name, wanted(), { cluster_name: '$(HOME) $$x' }, DEFAULT_HOST_SETTINGS),
    ).containers
    assert.deepEqual(container?.args, ['-c', 'cluster_name=$$(HOME) $$$$x'])
  })
})

describe('what was wanted', () => {
  it('is read back from its text, and anything else is nothing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), text => {
        const parsed = parseWanted(text)
        if (parsed !== undefined) assert.deepEqual(parseWanted(wantedText(parsed)), parsed)
      }),
      { numRuns: sized(300, 5000) },
    )
    for (const text of [undefined, '', 'null', '{}', '[]', '{"running":true,"initialized":true,"spec":null}'])
      assert.equal(parseWanted(text), undefined, text)
    const lacking = JSON.parse(wantedText(wanted())) as { spec: Record<string, unknown> }
    for (const field of Object.keys(lacking.spec)) {
      const { [field]: _, ...spec } = lacking.spec
      assert.equal(parseWanted(JSON.stringify({ ...lacking, spec })), undefined, field)
    }
  })
})

describe('the Service', () => {
  const names = instanceNames(REF)
  it('answers for a pod that is not ready, inside the cluster only', () => {
    const { spec } = buildService(names, { type: 'None' })
    assert.deepEqual(spec, {
      type: 'ClusterIP',
      publishNotReadyAddresses: true,
      selector: { 'svc.internal/uid': REF.uid },
      ports: [{ name: 'postgres', port: 5432, targetPort: 'postgres', protocol: 'TCP' }],
    })
  })

  it('is exposed as an admin says', () => {
    assert.equal(buildService(names, { type: 'NodePort', host: 'nodes.example' }).spec?.type, 'NodePort')
    const { spec, metadata } = buildService(names, {
      type: 'LoadBalancer',
      annotations: { 'example.com/internal': 'true' },
      loadBalancerClass: 'example.com/lb',
      sourceRanges: ['192.0.2.0/24'],
    })
    assert.equal(spec?.type, 'LoadBalancer')
    assert.equal(spec.loadBalancerClass, 'example.com/lb')
    assert.deepEqual(spec.loadBalancerSourceRanges, ['192.0.2.0/24'])
    assert.equal(metadata?.annotations?.['example.com/internal'], 'true')
  })
})

describe('the claim', () => {
  const figures = { ...CLAIM, storageClass: 'fast' }
  it('asks for the size and the class', () => {
    const { spec } = buildClaim(instanceNames(REF), figures)
    assert.deepEqual(spec, {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1073741824' } },
      storageClassName: 'fast',
    })
    const { spec: plain } = buildClaim(instanceNames(REF), { ...figures, storageClass: undefined })
    assert.equal('storageClassName' in plain!, false)
  })

  it('says what is to become of the data, and that there is some, once that is known', () => {
    const said = (changes: Partial<typeof CLAIM>) =>
      buildClaim(instanceNames(REF), { ...CLAIM, ...changes }).metadata?.annotations ?? {}
    assert.equal(said({ deletionPolicy: 'Retain' })[ANNOTATIONS.deletionPolicy], 'Retain')
    assert.equal(said({ initialized: true })[ANNOTATIONS.initialized], 'true')
    assert.deepEqual(Object.keys(said({})), [ANNOTATIONS.resource, ANNOTATIONS.lineage])
  })
})

describe('the Secret with the server’s files', () => {
  it('gives back what was put in, and nothing where a file is missing or garbled', () => {
    const files = { certificate: 'CERT', key: 'KEY', authorities: 'CA', settings: "a = 'ü'" }
    const ascii = { ...files, settings: "a = 'b'" }
    const secret = buildFilesSecret(instanceNames(REF), ascii, false)
    assert.deepEqual(filesIn(secret), ascii)
    assert.equal(filesIn(undefined), undefined)
    for (const name of Object.keys(secret.data!)) {
      const { [name]: _, ...rest } = secret.data!
      assert.equal(filesIn({ ...secret, data: rest }), undefined, name)
      assert.equal(filesIn({ ...secret, data: { ...secret.data, [name]: '%%%' } }), undefined, name)
    }
  })

  it('says whether data may be begun, which no file is', () => {
    const files = { certificate: 'CERT', key: 'KEY', authorities: 'CA', settings: 'x' }
    const allowing = buildFilesSecret(instanceNames(REF), files, true)
    assert.equal(atob(allowing.data!['new-data']!), 'allowed')
    assert.equal(allowsNewData(allowing), true)
    assert.deepEqual(filesIn(allowing), files)
    assert.equal(allowsNewData(buildFilesSecret(instanceNames(REF), files, false)), false)
  })
})

describe('the network policy', () => {
  it('lets the namespace and the control plane in, and nobody out', () => {
    assert.deepEqual(buildNetworkPolicy('ns', 'svc-system').spec, {
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'svc-postgres' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            { podSelector: {} },
            { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'svc-system' } } },
          ],
          ports: [{ port: 5432, protocol: 'TCP' }],
        },
      ],
      egress: [],
    })
  })

  it('lets everybody in to the kinds that are exposed, and to the pods of no other', () => {
    const { name } = buildNetworkPolicy('ns', 'svc-system').metadata!
    const { metadata, spec } = buildExposurePolicy('ns', ['preview'])
    assert.notEqual(metadata?.name, name)
    assert.deepEqual(spec?.ingress, [{ ports: [{ port: 5432, protocol: 'TCP' }] }])
    const selects = (kind: EnvironmentKind): boolean => {
      const labels = build(wanted({ spec: { ...SPEC, kind } })).spec!.template.metadata!.labels!
      const { matchLabels = {}, matchExpressions = [] } = spec.podSelector!
      return (
        Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
        matchExpressions.every(({ key, operator, values }) => operator === 'In' && values!.includes(labels[key] ?? ''))
      )
    }
    assert.deepEqual(ENVIRONMENT_KINDS.filter(selects), ['preview'])
  })

  it('lets nobody in by a policy from a time when some were exposed', () => {
    assert.deepEqual(buildExposurePolicy('ns', []).spec?.ingress, [])
  })
})

describe('the objects of a project', () => {
  it('are an account without token and the two bindings to our two accounts', () => {
    assert.equal(buildServiceAccount('ns').automountServiceAccountToken, false)
    assert.deepEqual(
      buildRoleBindings('ns', 'svc-system').map(({ metadata, roleRef, subjects }) => [
        metadata?.name,
        roleRef.name,
        subjects?.map(({ kind, name, namespace }) => `${kind} ${namespace}/${name}`),
      ]),
      [
        ['svc-operator', 'svc-operator-project', ['ServiceAccount svc-system/svc-operator']],
        ['svc-apiserver', 'svc-apiserver-project', ['ServiceAccount svc-system/svc-apiserver']],
      ],
    )
  })
})

describe('the image’s start script', () => {
  const folder = new URL('../../../images/postgres/', import.meta.url).pathname
  for (const script of ['svc-postgres', 'svc-probe', 'build-template.sh'])
    it(`${script} is what a plain shell understands`, () => {
      execFileSync('sh', ['-n', `${folder}${script}`])
    })
})
