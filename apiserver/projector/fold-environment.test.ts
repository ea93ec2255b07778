import assert from 'node:assert/strict'
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { ObjectMetadata } from '../../lib/model/resource.ts'
import type { UnderWay, UnfoldedIntent } from '../store/environment-folds.ts'
import type { EnvironmentRow } from '../store/environments.ts'
import { type EnvironmentFold, foldEnvironment } from './fold-environment.ts'

const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'pr-1' }
const EXPIRY = '2027-01-01T00:00:00.000Z'
const LATER = '2027-02-01T00:00:00.000Z'
const SPEC: EnvironmentSpec = {
  ...path,
  kind: 'preview',
  suspended: false,
  ttlHours: 24,
  expiresAt: EXPIRY,
  deletionPolicy: 'Delete',
  resources: { memory: '256Mi', storage: '1Gi' },
  request: { id: 'op_1', seq: 1, verb: 'create' },
}

const resource = (
  spec: Partial<EnvironmentSpec> = {},
  metadata: Partial<ObjectMetadata> = {},
  status: NonNullable<Environment['status']> = { phase: 'ready' },
): Environment => ({
  apiVersion: 'svc.internal/v1alpha1',
  kind: 'Environment',
  metadata: {
    namespace: 'svc-acme-shop',
    name: 'acme.shop.pr-1',
    uid: 'uid-1',
    resourceVersion: '9',
    generation: 2,
    creationTimestamp: '2026-12-31T00:00:00Z',
    finalizers: [],
    labels: {},
    annotations: {},
    ownerReferences: [],
    lastManager: 'kubectl',
    ...metadata,
  },
  spec: { ...SPEC, ...spec },
  status,
})

const row = (changes: Partial<EnvironmentRow> = {}): EnvironmentRow => ({
  ...path,
  id: 'row-1',
  kind: 'preview',
  dataMode: 'sanitized',
  region: 'local',
  postgresMajor: 17,
  ttlHours: 24,
  expiresAt: new Date(EXPIRY),
  deletionProtection: false,
  deletionPolicy: 'Delete',
  sourceEnvironmentId: null,
  namespace: 'svc-acme-shop',
  resourceName: 'acme.shop.pr-1',
  uid: 'uid-1',
  seq: 1,
  phase: 'ready',
  status: { phase: 'ready' },
  observedGeneration: 1,
  observedSpec: SPEC,
  createdAt: new Date(0),
  updatedAt: new Date(0),
  deletedAt: null,
  deleting: false,
  ...changes,
})

const intent = (changes: Partial<UnfoldedIntent>): UnfoldedIntent => ({
  id: 7,
  seq: 2,
  verb: 'update',
  payload: {},
  state: 'dispatched',
  attempts: 1,
  generation: 2,
  operationId: null,
  ...changes,
})
const underWay = (changes: Partial<UnderWay> = {}): UnderWay => ({
  intents: [],
  operation: null,
  requestIsOurs: true,
  ...changes,
})

const fold = (input: { row?: EnvironmentRow; resource?: Environment; underWay?: UnderWay } = {}): EnvironmentFold =>
  foldEnvironment({
    row: input.row ?? row(),
    resource: input.resource ?? resource(),
    underWay: input.underWay ?? underWay(),
    clientName: 'svc-apiserver',
    prune: environmentType.prune,
  })

describe('foldEnvironment', () => {
  it('finds nothing to write for what was folded already', () => {
    const same = fold({ row: row({ observedGeneration: 2 }) })
    assert.deepEqual(same, { foldedIntents: [] })
  })

  it('concludes nothing from a state that is older than the one folded last', () => {
    const late = fold({
      row: row({ observedGeneration: 3, phase: 'suspended' }),
      underWay: underWay({ intents: [intent({ generation: 1 })] }),
    })
    assert.deepEqual(late, { foldedIntents: [] })
  })

  it('shows a deletion that was asked for as deleting, whatever the operator says yet', () => {
    assert.equal(fold({ resource: resource({}, { deletionTimestamp: EXPIRY }) }).columns?.phase, 'deleting')
    assert.equal(fold({ resource: resource({}, {}, {}) }).columns?.phase, 'requested')
  })

  describe('tells whose change it was', () => {
    const external = (
      changes: Partial<EnvironmentSpec>,
      more: Partial<UnderWay> = {},
      at: Partial<EnvironmentRow> = {},
    ) => fold({ row: row(at), resource: resource(changes), underWay: underWay(more) }).external

    const cases: readonly [
      why: string,
      Partial<EnvironmentSpec>,
      Partial<UnderWay>,
      fields: readonly string[] | undefined,
    ][] = [
      ['kubectl set a field', { suspended: true }, {}, ['suspended']],
      [
        'kubectl set two, one of them inside',
        { image: 'x', resources: { memory: '512Mi', storage: '1Gi' } },
        {},
        ['image', 'resources.memory'],
      ],
      ['kubectl took a field away', { resources: { memory: '256Mi' } }, {}, ['resources.storage']],
      [
        'our update set it',
        { deletionProtection: true },
        { intents: [intent({ payload: { deletionProtection: true } })] },
        undefined,
      ],
      [
        'our update set it, not noted yet',
        { deletionProtection: true },
        { intents: [intent({ payload: { deletionProtection: true }, state: 'pending', generation: null })] },
        undefined,
      ],
      [
        'our update set it to another value',
        { deletionProtection: true },
        { intents: [intent({ payload: { deletionProtection: false } })] },
        ['deletionProtection'],
      ],
      [
        'our suspend, and kubectl beside it',
        { suspended: true, image: 'x', request: { id: 'op_2', seq: 2, verb: 'suspend' } },
        { intents: [intent({ verb: 'suspend', operationId: 'op_2' })] },
        ['image'],
      ],
      [
        'the second of two updates of ours',
        { deletionPolicy: 'Retain' },
        {
          intents: [
            intent({ id: 7, payload: { deletionPolicy: 'Delete' } }),
            intent({ id: 8, payload: { deletionPolicy: 'Retain' } }),
          ],
        },
        undefined,
      ],
      [
        'a renewal',
        { ttlHours: 48, expiresAt: LATER },
        { intents: [intent({ payload: { ttlHours: 48, expiresAt: LATER }, state: 'pending', generation: null })] },
        undefined,
      ],
      [
        'an expiry that is no renewal’s',
        { expiresAt: LATER },
        { intents: [intent({ payload: { ttlHours: 24, expiresAt: EXPIRY } })] },
        ['expiresAt'],
      ],
      [
        'a request that is no operation of ours',
        { request: { id: 'forged', seq: 9, verb: 'resume' } },
        { requestIsOurs: false },
        ['request'],
      ],
      ['nothing changed but the generation', {}, {}, undefined],
    ]
    for (const [why, changes, more, fields] of cases)
      it(why, () => assert.deepEqual(external(changes, more)?.fields, fields))

    it('with the generations and the client, where that may have been the one', () => {
      assert.deepEqual(external({ image: 'x' }), {
        generation: { from: 1, to: 2 },
        fields: ['image'],
        manager: 'kubectl',
      })
      const overwritten = fold({ resource: resource({ image: 'x' }, { lastManager: 'svc-apiserver' }) })
      assert.equal(overwritten.external?.manager, undefined)
    })

    it('at the first look too, against what our create wrote', () => {
      const first = { observedGeneration: null, observedSpec: null }
      const { request: _, ...payload } = SPEC
      const create = { intents: [intent({ verb: 'create', seq: 1, payload, generation: 1 })] }
      assert.equal(external({}, create, first), undefined)
      assert.deepEqual(external({ image: 'x' }, create, first), {
        generation: { from: null, to: 2 },
        fields: ['image'],
        manager: 'kubectl',
      })
    })
  })

  describe('folds what the API itself is about to change', () => {
    it('only once it is there: until then the columns keep what the command set', () => {
      const protectedRow = row({ deletionProtection: true })
      const onItsWay = intent({ payload: { deletionProtection: true }, state: 'pending', generation: null })
      const before = fold({ row: protectedRow, underWay: underWay({ intents: [onItsWay] }) })
      assert.deepEqual([before.columns?.deletionProtection, before.foldedIntents], [true, []])
      const lagging = fold({
        row: protectedRow,
        underWay: underWay({ intents: [intent({ ...onItsWay, state: 'dispatched', generation: 3 })] }),
      })
      assert.deepEqual([lagging.columns?.deletionProtection, lagging.foldedIntents], [true, []])
      const there = fold({
        row: protectedRow,
        resource: resource({ deletionProtection: true }),
        underWay: underWay({ intents: [intent({ ...onItsWay, state: 'dispatched', generation: 2 })] }),
      })
      assert.deepEqual([there.columns?.deletionProtection, there.foldedIntents, there.external], [true, [7], undefined])
    })

    it('and follows the resource once nothing is on its way: a refused update does not stay', () => {
      assert.equal(fold({ row: row({ deletionProtection: true }) }).columns?.deletionProtection, false)
    })

    const renewed = row({ ttlHours: 48, expiresAt: new Date(LATER) })
    const renewal = intent({ payload: { ttlHours: 48, expiresAt: LATER }, generation: 3 })
    it('an expiry that a renewal set, but that the cache does not show yet, stays', () => {
      const lagging = fold({ row: renewed, underWay: underWay({ intents: [renewal] }) })
      assert.deepEqual(
        [lagging.columns?.expiresAt, lagging.columns?.ttlHours, lagging.foldedIntents],
        [new Date(LATER), 48, []],
      )
    })
    it('a renewal that nobody was told of yet does not show, nor is it taken for somebody else’s', () => {
      const early = fold({
        resource: resource({ ttlHours: 48, expiresAt: LATER }, { generation: 3 }),
        underWay: underWay({ intents: [{ ...renewal, state: 'pending', generation: null }] }),
      })
      assert.deepEqual([early.columns?.expiresAt, early.external], [new Date(EXPIRY), undefined])
    })
    it('an expiry from outside that overwrote a renewal wins, and is told', () => {
      const moved = '2027-03-01T00:00:00.000Z'
      const found = fold({
        row: renewed,
        resource: resource({ expiresAt: moved }, { generation: 4 }),
        underWay: underWay({ intents: [renewal] }),
      })
      assert.deepEqual([found.columns?.expiresAt, found.external?.fields], [new Date(moved), ['expiresAt']])
    })
  })

  it('judges the open operation by what it sees, and says nothing twice', () => {
    const operation = {
      id: 'op_2',
      kind: 'suspend_environment',
      state: 'running',
      seq: 2,
      attemptCount: 1,
      overdue: false,
    } as const
    const request = { id: 'op_2', seq: 2, verb: 'suspend' } as const
    const suspend = intent({ verb: 'suspend', operationId: 'op_2' })
    const judge = (outcome: 'running' | 'succeeded', attempts: number) =>
      fold({
        resource: resource(
          { suspended: true, request },
          {},
          { phase: 'ready', operation: { id: 'op_2', seq: 2, outcome, attempts } },
        ),
        underWay: underWay({ intents: [suspend], operation }),
      }).judgement
    assert.equal(judge('running', 1), undefined)
    assert.deepEqual(judge('running', 2), { state: 'running', attempts: 2 })
    assert.deepEqual(judge('succeeded', 2), { state: 'succeeded', attempts: 2 })
    const notThereYet = fold({ underWay: underWay({ intents: [suspend], operation }) })
    assert.equal(notThereYet.judgement, undefined)
  })
})
