import assert from 'node:assert/strict'
import { conditionOf } from '../../crds/conditions.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import { attempt, type DecisionRow, describeDecisions, PROVEN, running, STARTED } from '../../testkit/decision-table.ts'
import {
  CREATED_MS,
  deletionAsked,
  type EnvironmentModifier,
  edited,
  environment,
  everReady,
  inPhase,
  instance,
  isoAfter,
  metadata,
  observedOf,
  preview,
  request,
  spec,
  status,
} from '../../testkit/gen.ts'
import { operatorConfig } from '../config/config.ts'
import { fails, holds } from './conditions.ts'
import { decide } from './decide.ts'

const { limits } = operatorConfig({})

const labelled = (labels: Record<string, string>, terminating = false) => ({ labels, terminating })
const OURS = { 'svc.internal/organization': 'acme', 'svc.internal/project': 'shop' }

const ROWS: readonly DecisionRow[] = [
  // What comes before all that
  ...(['requested', 'provisioning', 'ready', 'suspended', 'updating', 'failed_recoverable'] as const).map(
    (phase): DecisionRow => ({
      because: `a deletion is served in ${phase}, paused or not, expired or not, and ends what was asked before`,
      given: [
        preview({ expiresAt: isoAfter(0) }),
        metadata({ annotations: { [ANNOTATIONS.paused]: 'true' } }),
        inPhase(phase),
        request('create'),
        deletionAsked(1),
      ],
      at: 9_999,
      phase: 'deleting',
      action: 'tear-down',
      conditions: ['Ready=False/Deleting', 'Reconciling=True/Deleting'],
      operation: 'failed 1 Superseded by deletion',
    }),
  ),
  {
    because: 'a deletion that was let go needs nothing more from us',
    given: [inPhase('deleting'), deletionAsked(1), metadata({ finalizers: ['somebody/else'] })],
    phase: 'deleting',
  },
  ...(['provisioning', 'ready', 'suspended', 'updating', 'failed_recoverable'] as const).map(
    (phase): DecisionRow => ({
      because: `what keeps the data follows the policy in ${phase}, before anything else and without a word`,
      given: [inPhase(phase), everReady, spec({ deletionPolicy: 'Retain', suspended: phase === 'suspended' }), edited],
      seen: { instance: instance('stopped', { deletionPolicy: 'Delete' }) },
      phase,
      action: 'set-deletion-policy',
      conditions: [],
    }),
  ),
  {
    because: 'what keeps the data and was never told is told',
    given: [inPhase('ready'), everReady, spec({ deletionPolicy: 'Delete' })],
    seen: { instance: instance('running', { deletionPolicy: 'untold' }), recollection: PROVEN },
    phase: 'ready',
    action: 'set-deletion-policy',
  },
  {
    because: 'what keeps the data and knows it is left alone',
    given: [inPhase('ready'), everReady, spec({ deletionPolicy: 'Delete' })],
    seen: { instance: instance('running', { deletionPolicy: 'Delete' }), recollection: PROVEN },
    phase: 'ready',
  },
  {
    because: 'a name that contradicts the ids is nobody’s',
    given: [metadata({ name: 'acme.shop.other' }), request('create')],
    phase: 'requested',
    conditions: ['Stalled=True/NamespaceMismatch', 'Ready=False/NamespaceMismatch'],
    operation: 'failed 1 The name is "acme.shop.other", the ids in its spec ask for "acme.shop.main"',
  },
  {
    because: 'a namespace of somebody else is not ours to work in',
    given: [],
    seen: { namespace: labelled({ 'svc.internal/organization': 'evil', 'svc.internal/project': 'shop' }) },
    phase: 'requested',
    conditions: ['Stalled=True/NamespaceMismatch'],
  },
  {
    because: 'a namespace that says the same is',
    given: [],
    seen: {
      namespace: labelled(OURS),
      instance: instance('absent'),
    },
    phase: 'provisioning',
    action: 'start',
  },
  {
    because: 'in a namespace that is being deleted nothing is made',
    given: [request('create')],
    seen: { namespace: labelled(OURS, true), instance: instance('absent') },
    phase: 'requested',
    conditions: ['Stalled=True/NamespaceTerminating'],
  },
  {
    because: 'in a namespace that is being deleted a deletion goes on as anywhere',
    given: [inPhase('ready'), everReady, deletionAsked(1)],
    seen: { namespace: labelled(OURS, true) },
    phase: 'deleting',
    action: 'tear-down',
  },
  {
    because: 'what was never adopted goes without a record',
    given: [metadata({ name: 'acme.shop.other' }), inPhase('requested'), deletionAsked(1)],
    phase: 'requested',
    action: 'release',
  },
  {
    because: 'what was adopted before its namespace changed hands is torn down like any other',
    given: [inPhase('ready'), everReady, deletionAsked(1)],
    seen: { namespace: labelled({}) },
    phase: 'deleting',
    action: 'tear-down',
  },
  {
    because: 'a pause keeps everything as it is, expiry included, and fails no request',
    given: [
      preview({ expiresAt: isoAfter(0) }),
      metadata({ annotations: { [ANNOTATIONS.paused]: 'true' } }),
      request('resume'),
      inPhase('updating'),
      status({ operation: running('resume') }),
    ],
    at: 9_999,
    phase: 'updating',
    conditions: ['Stalled=True/Paused'],
    operation: 'running 1',
  },
  {
    because: 'a preview is swept a minute after its expiry',
    given: [preview({ expiresAt: isoAfter(100) }), inPhase('ready'), everReady],
    at: 160,
    phase: 'ready',
    action: 'expire',
    conditions: ['Expired=True/TimeToLiveEnded'],
  },
  {
    because: 'and not a second sooner',
    given: [preview({ expiresAt: isoAfter(100) }), inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 159,
    phase: 'ready',
    conditions: ['Expired=False/InGrace', 'Expiring=absent'],
  },
  {
    because: 'a tenth of its hours before its expiry a preview is warned of',
    given: [preview({ ttlHours: 10 }), inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9 * 3600,
    phase: 'ready',
    conditions: ['Expiring=True/ExpiresSoon', 'Expired=absent', 'Ready=True/Ready'],
  },
  {
    because: 'and not a second sooner',
    given: [preview({ ttlHours: 10 }), inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9 * 3600 - 1,
    phase: 'ready',
    conditions: ['Expiring=absent'],
  },
  {
    because: 'an expiry without hours is told an hour before, also of what sleeps',
    given: [preview({ expiresAt: isoAfter(7200) }), spec({ suspended: true }), inPhase('suspended'), everReady],
    seen: { instance: instance('stopped', { initialized: true }) },
    at: 3600,
    phase: 'suspended',
    conditions: ['Expiring=True/ExpiresSoon'],
  },
  {
    because: 'a protected preview outlives its time, and says so',
    given: [preview({ ttlHours: 1 }), spec({ deletionProtection: true }), inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9_999,
    phase: 'ready',
    conditions: ['Expired=True/Protected', 'Expiring=absent'],
  },
  {
    because: 'one whose protection was lifted since the last look is not swept for a time that was over long ago',
    given: [preview({ ttlHours: 1 }), inPhase('ready'), everReady, status({ deletionProtection: true }), edited],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9_999,
    phase: 'ready',
    conditions: ['Expired=False/InGrace'],
  },
  {
    because: 'nor one that changed so often since that it may have been protected in between',
    given: [preview({ ttlHours: 1 }), inPhase('ready'), everReady, edited, edited],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9_999,
    phase: 'ready',
    conditions: ['Expired=False/InGrace'],
  },
  {
    because: 'a single change cannot have lifted what the last look saw unprotected',
    given: [preview({ ttlHours: 1 }), inPhase('ready'), everReady, edited],
    at: 9_999,
    phase: 'ready',
    action: 'expire',
  },
  {
    because: 'the grace that was noted is kept to',
    given: [preview({ ttlHours: 1 }), inPhase('ready'), everReady, status({ graceUntil: isoAfter(10_000) })],
    at: 10_000,
    phase: 'ready',
    action: 'expire',
  },
  {
    because: 'without an expiry its hours count from its creation',
    given: [preview({ ttlHours: 1 }), inPhase('failed_recoverable')],
    at: 3660,
    phase: 'failed_recoverable',
    action: 'expire',
  },
  {
    because: 'a long-lived environment is not swept by a stray field',
    given: [spec({ kind: 'production', ttlHours: 1, expiresAt: isoAfter(1) }), inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    at: 9_999,
    phase: 'ready',
  },
]

describe('decide', () => {
  describeDecisions(ROWS)

  it('changes the time of a condition with its status only', () => {
    const before = inPhase('updating', 0, { Ready: fails('Updating', 'x'), Reconciling: holds('Updating', 'x') })
    const made = environment(before, everReady)
    const seen = { instance: instance('failed', { failure: { reason: 'Crashed', message: 'y' }, startFailures: 1 }) }
    const held = { ...seen, recollection: { ...STARTED, attempt: attempt(0) } }
    const { status: next } = decide(observedOf(made, held), CREATED_MS + 9_000, limits)
    assert.deepEqual(conditionOf(next.conditions, 'Ready'), {
      type: 'Ready',
      status: 'False',
      reason: 'Crashed',
      message: 'y',
      observedGeneration: 1,
      lastTransitionTime: isoAfter(0),
    })
    assert.equal(next.phaseTransitionTime, isoAfter(0))
  })

  it('takes a status that a cluster put where nobody has judged for none, however old the preview is', () => {
    const expired = (...given: EnvironmentModifier[]) =>
      decide(observedOf(environment(preview({ expiresAt: isoAfter(60) }), ...given)), CREATED_MS + 9e6, limits)
    assert.deepEqual(expired(status({ observedGeneration: -1 })), expired())
    const twice = [metadata({ generation: 2 }), status({ observedGeneration: -1 })]
    // Two specs that nobody saw: the first may have protected it.
    assert.deepEqual(expired(...twice), expired(metadata({ generation: 2 })))
  })

  it('rests an action that failed, and not for longer than a minute', () => {
    const made = environment(inPhase('provisioning'))
    const trouble = (retryAtMs: number): Parameters<typeof observedOf>[1] => ({
      instance: instance('absent'),
      recollection: {
        attempt: attempt(0),
        trouble: {
          ...{ action: 'start', condition: 'StorageReady', reason: 'DiskFull', message: 'No space' },
          ...{ count: 2, retryAtMs, generation: 1 },
        } as const,
      },
    })
    const resting = decide(observedOf(made, trouble(CREATED_MS + 500)), CREATED_MS, limits)
    assert.deepEqual([resting.action, resting.requeueAfterMs], [undefined, 500])
    assert.equal(conditionOf(resting.status.conditions, 'StorageReady')?.reason, 'DiskFull')
    assert.equal(decide(observedOf(made, trouble(CREATED_MS)), CREATED_MS, limits).action?.kind, 'start')
    const clockSetBack = decide(observedOf(made, trouble(CREATED_MS + 9e9)), CREATED_MS, limits)
    assert.equal(clockSetBack.action?.kind, 'start')
  })

  it('runs the image in force until a resume, and the one that is wanted from then on', () => {
    const imageOf = (...given: EnvironmentModifier[]) => {
      const { action } = decide(
        observedOf(environment(everReady, spec({ image: 'postgres:17.11' }), ...given), {
          instance: instance('stopped'),
        }),
        CREATED_MS + 60_000,
        limits,
      )
      return action?.kind === 'start' ? action.settings.image : action?.kind
    }
    assert.equal(imageOf(inPhase('ready')), 'postgres:17.10')
    assert.equal(imageOf(inPhase('updating')), 'postgres:17.10')
    assert.equal(imageOf(inPhase('suspended')), 'postgres:17.11')
    assert.equal(imageOf(inPhase('failed_recoverable')), 'postgres:17.11')
  })
})
