import assert from 'node:assert/strict'
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { ENVIRONMENT_GONE, OVERTAKEN } from '../../lib/model/operation.ts'
import type { ObjectMetadata } from '../../lib/model/resource.ts'
import type { PendingIntent } from '../store/pending-intents.ts'
import { type IntentDecision, judgeIntent, NAME_TAKEN, PROTECTED } from './judge-intent.ts'

const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }

const intent = (changes: Partial<PendingIntent>): PendingIntent => ({
  ...path,
  intentId: 1,
  seq: 5,
  verb: 'suspend',
  payload: {},
  attempts: 0,
  requestId: 'req',
  operationId: 'op_5',
  actor: 'user:usr_1',
  call: null,
  environmentRow: 'row',
  namespace: 'ns',
  resourceName: 'acme.shop.main',
  uid: 'uid-1',
  phase: 'ready',
  createOperationId: 'op_1',
  ...changes,
})
const create = intent({ verb: 'create', seq: 1, operationId: 'op_1', uid: null })
const remove = intent({ verb: 'delete' })
const update = intent({ verb: 'update', operationId: null, actor: null })
const again = { attempts: 1 }

const there = (spec: Partial<EnvironmentSpec> = {}, metadata: Partial<ObjectMetadata> = {}): Environment => ({
  apiVersion: 'svc.internal/v1alpha1',
  kind: 'Environment',
  metadata: {
    ...{ namespace: 'ns', name: 'acme.shop.main', uid: 'uid-1', resourceVersion: '9', generation: 3 },
    ...{ creationTimestamp: '2026-01-01T00:00:00Z', finalizers: [], labels: {}, annotations: {}, ownerReferences: [] },
    ...metadata,
  },
  spec: { ...path, kind: 'staging', request: { id: 'op_1', seq: 1, verb: 'create' }, ...spec },
})
const request = (id: string, seq: number): Partial<EnvironmentSpec> => ({ request: { id, seq, verb: 'suspend' } })
const deleting = { deletionTimestamp: '2026-01-02T00:00:00Z' }
const foreign = there(request('forged', 1), { uid: 'uid-2' })
const done = { do: 'done', uid: 'uid-1', generation: 3 } as const

const CASES: readonly [why: string, PendingIntent, Environment | undefined, IntentDecision][] = [
  ['nothing there', create, undefined, { do: 'create' }],
  ['made by an earlier attempt', { ...create, ...again }, there(), done],
  ['made by an earlier attempt, deleted since', { ...create, ...again }, there({}, deleting), done],
  ['the name is taken', create, foreign, { do: 'fail', error: NAME_TAKEN }],
  [
    'the name is taken by something without a request',
    create,
    there({ request: undefined }),
    { do: 'fail', error: NAME_TAKEN },
  ],
  [
    'the predecessor is on its way out',
    create,
    there(request('op_0', 9), deleting),
    { do: 'wait', why: 'A resource of this name is being deleted' },
  ],

  ['suspend', intent({}), there(), { do: 'patch', uid: 'uid-1', resourceVersion: undefined }],
  ['suspend, written by an earlier attempt', intent(again), there(request('op_5', 5)), done],
  ['suspend of something gone', intent({}), undefined, { do: 'fail', error: ENVIRONMENT_GONE }],
  ['suspend, the name has another life', intent({}), foreign, { do: 'fail', error: ENVIRONMENT_GONE }],
  ['suspend of something never made', intent({ uid: null }), undefined, { do: 'fail', error: ENVIRONMENT_GONE }],
  ['suspend while it is deleted', intent({}), there({}, deleting), { do: 'fail', error: OVERTAKEN }],
  ['suspend after a higher number', intent({}), there(request('forged', 6)), { do: 'fail', error: OVERTAKEN }],

  ['update, bound to what was seen', update, there(), { do: 'patch', uid: 'uid-1', resourceVersion: '9' }],
  [
    'update, written by an earlier attempt',
    { ...update, ...again },
    there({}, { annotations: { 'svc.internal/intent': '5' } }),
    done,
  ],
  [
    'update, a mark that an earlier attempt cannot have left',
    update,
    there({}, { annotations: { 'svc.internal/intent': '9' } }),
    { do: 'patch', uid: 'uid-1', resourceVersion: '9' },
  ],
  [
    'update again, never written',
    { ...update, ...again },
    there({}, { annotations: { 'svc.internal/intent': '4' } }),
    { do: 'patch', uid: 'uid-1', resourceVersion: '9' },
  ],

  ['delete', remove, there(), { do: 'announceAndDelete', uid: 'uid-1' }],
  [
    'delete, announced by an earlier attempt',
    { ...remove, ...again },
    there(request('op_5', 5)),
    { do: 'delete', uid: 'uid-1', generation: 3 },
  ],
  [
    'delete past a number from outside',
    remove,
    there(request('forged', 99)),
    { do: 'delete', uid: 'uid-1', generation: 3 },
  ],
  ['delete of what is being deleted', remove, there({}, deleting), done],
  ['delete of something gone', remove, undefined, { do: 'done', uid: 'uid-1', generation: undefined }],
  ['delete, the name has another life', remove, foreign, { do: 'done', uid: 'uid-1', generation: undefined }],
  ['delete of something protected', remove, there({ deletionProtection: true }), { do: 'fail', error: PROTECTED }],
  ['delete of something never made', { ...remove, uid: null }, undefined, { do: 'cancelCreate' }],
  ['delete of something never made, the name is taken', { ...remove, uid: null }, foreign, { do: 'cancelCreate' }],
  [
    'delete of something made without anybody noting it',
    { ...remove, uid: null },
    there(),
    { do: 'bind', uid: 'uid-1' },
  ],
]

describe('judgeIntent', () => {
  for (const [why, given, current, decision] of CASES)
    it(`${given.verb}: ${why}`, () => assert.deepEqual(judgeIntent(given, current), decision))
})
