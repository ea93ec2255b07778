import assert from 'node:assert/strict'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { InstanceRef } from '../host.ts'
import { instanceNames } from './instance-names.ts'
import type { Claim, Pod, Service, StatefulSet } from './object-types.ts'
import { type Findings, type InstanceObjects, observationOf } from './observation.ts'
import { figuresText, type PlacedSpec, wantedText } from './wanted.ts'

const REF: InstanceRef = {
  key: { namespace: 'ns', name: 'acme.app.main' },
  uid: 'u',
  path: { organizationId: 'acme', projectId: 'app', environmentId: 'main' },
}
const SPEC: PlacedSpec = {
  cpu: '1',
  memoryBytes: 1,
  storageBytes: 1,
  maxConnections: 10,
  image: 'svc-postgres:17',
  kind: 'preview',
}
const statefulSet = (running: boolean, status: Partial<StatefulSet['status']> = {}): StatefulSet => ({
  metadata: {
    generation: 2,
    annotations: { [ANNOTATIONS.wanted]: wantedText({ running, spec: SPEC }) },
  },
  status: { observedGeneration: 2, replicas: 0, ...status },
})
const claim = (annotations: Record<string, string> = {}): Claim => ({
  metadata: { annotations: { [ANNOTATIONS.initialized]: 'true', ...annotations } },
})
const pod = (changes: { figures?: string; going?: boolean; ready?: boolean; id?: string } = {}): Pod => ({
  metadata: {
    annotations: { [ANNOTATIONS.figures]: changes.figures ?? figuresText(SPEC) },
    ...(changes.going === true ? { deletionTimestamp: '2026-11-27T12:00:00Z' } : {}),
  },
  status: {
    containerStatuses: [
      {
        name: 'postgres',
        ready: changes.ready ?? true,
        started: true,
        restartCount: 0,
        containerID: changes.id ?? 'c1',
        state: { running: { startedAt: '2026-11-27T12:00:00Z' as unknown as Date } },
      },
    ],
    conditions: [
      {
        type: 'ContainersReady',
        status: changes.ready === false ? 'False' : 'True',
        lastTransitionTime: '2026-11-27T12:00:30Z' as unknown as Date,
      },
    ],
  },
})
const NOTHING: InstanceObjects = { statefulSet: undefined, pod: undefined, service: undefined, claim: undefined }
const FINDINGS: Findings = {
  unlooked: false,
  answered: { id: 'c1', restarts: 0 },
  refused: undefined,
  failure: undefined,
  storageProblem: undefined,
  exposure: { type: 'None' },
  authorities: 'PEM',
}
const observe = (objects: Partial<InstanceObjects>, findings: Partial<Findings> = {}) =>
  observationOf(instanceNames(REF), { ...NOTHING, ...objects }, { ...FINDINGS, ...findings })

describe('an instance as it is observed', () => {
  const failure = { reason: 'Unschedulable', message: 'No node' }
  const rows: readonly (readonly [
    why: string,
    objects: Partial<InstanceObjects>,
    findings: Partial<Findings>,
    state: string,
  ])[] = [
    ['nothing is there', {}, {}, 'absent'],
    ['only data that outlived its environment', { claim: claim({ [ANNOTATIONS.retainedUntil]: 'x' }) }, {}, 'absent'],
    ['its StatefulSet was deleted by hand', { claim: claim() }, {}, 'stopped'],
    ['and its pod is going', { claim: claim(), pod: pod({ going: true }) }, {}, 'stopping'],
    ['or was left behind', { claim: claim(), pod: pod() }, {}, 'starting'],
    ['none is wanted and none is there', { statefulSet: statefulSet(false), claim: claim() }, {}, 'stopped'],
    ['none is wanted but one is there', { statefulSet: statefulSet(false), pod: pod() }, {}, 'stopping'],
    [
      'the controller has not seen yet that none is wanted',
      { statefulSet: statefulSet(false, { observedGeneration: 1 }) },
      {},
      'stopping',
    ],
    [
      'the controller counts a pod that we do not see',
      { statefulSet: statefulSet(false, { replicas: 1 }) },
      {},
      'stopping',
    ],
    ['one is wanted and none is there', { statefulSet: statefulSet(true) }, {}, 'starting'],
    ['it answers', { statefulSet: statefulSet(true), pod: pod() }, {}, 'running'],
    ['it has not answered yet', { statefulSet: statefulSet(true), pod: pod() }, { answered: undefined }, 'starting'],
    [
      'this process has just begun, and kubelet says that it serves',
      { statefulSet: statefulSet(true), pod: pod(), claim: claim({ [ANNOTATIONS.initialized]: 'true' }) },
      { answered: undefined, unlooked: true },
      'running',
    ],
    [
      'this process has just begun, and kubelet does not say so',
      {
        statefulSet: statefulSet(true),
        pod: pod({ ready: false }),
        claim: claim({ [ANNOTATIONS.initialized]: 'true' }),
      },
      { answered: undefined, unlooked: true },
      'starting',
    ],
    [
      'this process has just begun, and it was never served',
      { statefulSet: statefulSet(true), pod: pod(), claim: claim({ [ANNOTATIONS.initialized]: 'false' }) },
      { answered: undefined, unlooked: true },
      'starting',
    ],
    ['another run answered', { statefulSet: statefulSet(true), pod: pod({ id: 'c2' }) }, {}, 'starting'],
    [
      'it was started with other figures',
      { statefulSet: statefulSet(true), pod: pod({ figures: 'old' }) },
      {},
      'starting',
    ],
    ['it is being deleted', { statefulSet: statefulSet(true), pod: pod({ going: true }) }, {}, 'starting'],
    ['its probes fail', { statefulSet: statefulSet(true), pod: pod({ ready: false }) }, {}, 'unresponsive'],
    ['something stands in its way', { statefulSet: statefulSet(true), pod: pod() }, { failure }, 'failed'],
  ]
  for (const [why, objects, findings, state] of rows)
    it(`is ${state}: ${why}`, () => assert.equal(observe(objects, findings).state, state))

  it('says why it fails, and where it will be', () => {
    const service: Service = { spec: { clusterIP: '10.0.0.1' } }
    const seen = observe({ statefulSet: statefulSet(true), service }, { failure })
    assert.deepEqual(seen.failure, failure)
    assert.deepEqual(seen.endpoint, {
      host: `${instanceNames(REF).name}.ns.svc`,
      port: 5432,
      sslmode: 'verify-full',
      caCertificate: 'PEM',
    })
  })

  it('says where clients outside connect once the server proves the name that they come by', () => {
    const exposure = { type: 'NodePort', host: 'nodes.example' } as const
    const told = (annotations: Record<string, string>) => {
      const service: Service = { metadata: { annotations }, spec: { ports: [{ port: 5432, nodePort: 30123 }] } }
      return observe({ statefulSet: statefulSet(true), service }, { exposure }).endpoint?.external
    }
    assert.equal(told({}), undefined)
    assert.deepEqual(told({ [ANNOTATIONS.provenHost]: 'nodes.example' }), { host: 'nodes.example', port: 30123 })
  })

  it('tells how it stopped only where that was written down', () => {
    const stopped = (stop?: string) =>
      observe({
        statefulSet: statefulSet(false),
        claim: claim(stop === undefined ? {} : { [ANNOTATIONS.lastStop]: stop }),
      }).cleanStop
    assert.deepEqual([stopped('clean'), stopped('unclean'), stopped()], [true, false, undefined])
  })

  it('is not initialized where its claim is gone or was never served', () => {
    assert.equal(observe({ statefulSet: statefulSet(true) }).initialized, false)
    assert.equal(observe({ statefulSet: statefulSet(true), claim: claim() }).initialized, true)
    assert.equal(observe({ claim: { metadata: { annotations: {} } } }).initialized, false)
  })

  it('counts starts that failed since it last answered', () => {
    const crashed = (restartCount: number, answered?: Findings['answered']) => {
      const status = { name: 'postgres', image: 'x', imageID: 'y', containerID: 'c1', ready: false, restartCount }
      const containerStatuses = [{ ...status, state: { terminated: { exitCode: 1 } } }]
      const given = { metadata: pod().metadata!, status: { containerStatuses } }
      return observe({ statefulSet: statefulSet(true), pod: given }, { answered }).startFailures
    }
    assert.deepEqual([crashed(0), crashed(3), crashed(3, { id: 'c0', restarts: 2 })], [1, 4, 1])
  })
})
