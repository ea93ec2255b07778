import assert from 'node:assert/strict'
import { environmentSpec } from '../../crds/environment.ts'
import { buildEnvironment, buildPatch, type IntentContent } from './build-spec.ts'

const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'pr-41' }
const place = { namespace: 'svc-acme-shop-1', name: 'acme.shop.pr-41', path }
const payload = { ...path, kind: 'preview', suspended: false, resources: { memory: '256Mi' } }

const intent = (changes: Partial<IntentContent>): IntentContent => ({
  seq: 3,
  verb: 'suspend',
  payload: {},
  operation: { id: 'op_1', actor: 'user:usr_1' },
  ...changes,
})

describe('buildEnvironment', () => {
  it('makes a valid resource with labels, finalizer, actor and the request', () => {
    const built = buildEnvironment(place, intent({ seq: 1, verb: 'create', payload }))
    assert.deepEqual(built, {
      namespace: 'svc-acme-shop-1',
      name: 'acme.shop.pr-41',
      labels: {
        'svc.internal/organization': 'acme',
        'svc.internal/project': 'shop',
        'svc.internal/environment': 'pr-41',
      },
      annotations: { 'svc.internal/actor': 'user:usr_1', 'svc.internal/intent': '1' },
      finalizers: ['svc.internal/environment'],
      spec: { ...payload, request: { id: 'op_1', seq: 1, verb: 'create' } },
    })
    assert.deepEqual(environmentSpec.parse(built.spec), built.spec)
  })
})

describe('buildPatch', () => {
  for (const [why, given, spec] of [
    ['suspend stops', intent({}), { suspended: true, request: { id: 'op_1', seq: 3, verb: 'suspend' } }],
    [
      'resume starts',
      intent({ verb: 'resume' }),
      { suspended: false, request: { id: 'op_1', seq: 3, verb: 'resume' } },
    ],
    ['delete only says so', intent({ verb: 'delete' }), { request: { id: 'op_1', seq: 3, verb: 'delete' } }],
  ] as const)
    it(`${why} and carries the request`, () => {
      assert.deepEqual(buildPatch(given), {
        metadata: { annotations: { 'svc.internal/actor': 'user:usr_1', 'svc.internal/intent': '3' } },
        spec,
      })
    })

  it('update changes the payload’s fields, never the request, and clears the former actor', () => {
    assert.deepEqual(
      buildPatch(intent({ verb: 'update', payload: { deletionProtection: true }, operation: undefined })),
      {
        metadata: { annotations: { 'svc.internal/actor': null, 'svc.internal/intent': '3' } },
        spec: { deletionProtection: true },
      },
    )
  })
})
