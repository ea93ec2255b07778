import assert from 'node:assert/strict'
import {
  deadlineExceeded,
  ENVIRONMENT_GONE,
  type EnvironmentView,
  type Judgement,
  judgeOperation,
  type OperationKind,
  type OperationView,
  OVERTAKEN,
  type ReportedOperation,
} from './operation.ts'

const ours = (kind: OperationKind, more: Partial<OperationView> = {}): OperationView => ({
  id: 'op_ours',
  kind,
  seq: 5,
  dispatched: true,
  overdue: false,
  ...more,
})
const seen = (more: Partial<EnvironmentView> = {}): EnvironmentView => ({
  gone: false,
  requestId: 'op_ours',
  requestSeq: 5,
  ...more,
})
const report = (outcome: ReportedOperation['outcome'], more: Partial<ReportedOperation> = {}): ReportedOperation => ({
  id: 'op_ours',
  seq: 5,
  outcome,
  attempts: 2,
  ...more,
})

const create = ours('create_environment')
const suspend = ours('suspend_environment')
const resume = ours('resume_environment')
const remove = ours('delete_environment')
const overtaken: Judgement = { state: 'failed', error: OVERTAKEN }

const CASES: readonly [why: string, OperationView, EnvironmentView, Judgement][] = [
  ['not carried yet, nothing is there', { ...create, dispatched: false }, { gone: false }, { state: 'pending' }],
  ['not carried yet, so nothing is gone', { ...create, dispatched: false }, { gone: true }, { state: 'pending' }],
  ['the view is older than the patch', suspend, seen({ requestId: 'op_before', requestSeq: 4 }), { state: 'pending' }],
  ['carried, no report yet', create, seen(), { state: 'running' }],
  [
    'the report is about an earlier one',
    suspend,
    seen({ suspendedWanted: true, reported: report('succeeded', { id: 'op_before', seq: 4 }) }),
    { state: 'running' },
  ],
  ['under way after two attempts', create, seen({ reported: report('running') }), { state: 'running', attempts: 2 }],
  ['done', create, seen({ reported: report('succeeded') }), { state: 'succeeded', attempts: 2 }],
  [
    'failed, with the reason',
    create,
    seen({ reported: report('failed', { message: 'Disk full' }) }),
    { state: 'failed', error: 'Disk full', attempts: 2 },
  ],
  [
    'failed without a reason',
    create,
    seen({ reported: report('failed') }),
    { state: 'failed', error: 'The operator gave no reason', attempts: 2 },
  ],
  [
    'done, then changed from outside: it was reached',
    suspend,
    seen({ suspendedWanted: false, reported: report('succeeded') }),
    { state: 'succeeded', attempts: 2 },
  ],
  [
    'done, and a later request stands already',
    suspend,
    seen({ requestId: 'op_later', requestSeq: 6, reported: report('succeeded') }),
    { state: 'succeeded', attempts: 2 },
  ],

  ['resumed from outside while suspending', suspend, seen({ suspendedWanted: false }), overtaken],
  ['suspended from outside while resuming', resume, seen({ suspendedWanted: true }), overtaken],
  ['suspended from outside while being made', create, seen({ suspendedWanted: true }), overtaken],
  ['suspending as asked', suspend, seen({ suspendedWanted: true }), { state: 'running' }],
  ['resuming, the field taken away', resume, seen(), { state: 'running' }],
  ['a later request replaced ours', suspend, seen({ requestId: 'op_later', requestSeq: 6 }), overtaken],
  ['another request under our number', suspend, seen({ requestId: 'op_forged', requestSeq: 5 }), overtaken],
  ['deleted from outside while being made', create, seen({ deleting: true }), overtaken],
  ['expired while resuming', resume, seen({ phase: 'deleting' }), overtaken],
  [
    'overtaken keeps the attempts',
    resume,
    seen({ suspendedWanted: true, reported: report('running') }),
    { ...overtaken, attempts: 2 },
  ],

  ['gone while being made', create, seen({ gone: true }), { state: 'failed', error: ENVIRONMENT_GONE }],
  ['gone while suspending', suspend, { gone: true }, { state: 'failed', error: ENVIRONMENT_GONE }],
  [
    'gone before the suspend was carried',
    { ...suspend, dispatched: false },
    { gone: true },
    { state: 'failed', error: ENVIRONMENT_GONE },
  ],

  ['deletion asked for', remove, seen({ deleting: true }), { state: 'running' }],
  [
    'deletion of others, ours not carried yet',
    { ...remove, dispatched: false },
    seen({ requestId: 'op_before', requestSeq: 4, deleting: true }),
    { state: 'running' },
  ],
  [
    'reported done, but it is still there',
    remove,
    seen({ deleting: true, reported: report('succeeded') }),
    { state: 'running', attempts: 2 },
  ],
  ['deletion is done when it is gone', remove, { gone: true }, { state: 'succeeded' }],
  ['gone before our deletion was carried', { ...remove, dispatched: false }, { gone: true }, { state: 'succeeded' }],
  [
    'deletion refused for good',
    remove,
    seen({ reported: report('failed', { message: 'Kept' }) }),
    { state: 'failed', error: 'Kept', attempts: 2 },
  ],

  [
    'overdue under way',
    { ...create, overdue: true },
    seen({ reported: report('running') }),
    { state: 'failed', error: deadlineExceeded('create_environment'), attempts: 2 },
  ],
  [
    'overdue and never carried',
    { ...suspend, overdue: true, dispatched: false },
    seen({ requestId: undefined, requestSeq: undefined }),
    { state: 'failed', error: deadlineExceeded('suspend_environment') },
  ],
  [
    'done just before the deadline was noticed',
    { ...create, overdue: true },
    seen({ reported: report('succeeded') }),
    { state: 'succeeded', attempts: 2 },
  ],
  ['overtaken says more than overdue', { ...resume, overdue: true }, seen({ suspendedWanted: true }), overtaken],
  [
    'overdue deletion',
    { ...remove, overdue: true },
    seen({ deleting: true }),
    { state: 'failed', error: deadlineExceeded('delete_environment') },
  ],

  [
    'migrations are ended by whoever runs them',
    { ...ours('run_migrations'), overdue: true },
    seen({ requestId: undefined }),
    { state: 'running' },
  ],
  ['an import whose destination is gone', ours('import'), { gone: true }, { state: 'failed', error: ENVIRONMENT_GONE }],
]

describe('judgeOperation', () => {
  for (const [why, operation, environment, judgement] of CASES)
    it(`${operation.kind}: ${why}`, () => assert.deepEqual(judgeOperation(operation, environment), judgement))

  it('says after a deadline that the goal may still be reached', () => {
    assert.match(deadlineExceeded('create_environment'), /^deadline_exceeded: .*may still become ready$/)
  })
})
