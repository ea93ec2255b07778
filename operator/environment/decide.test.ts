import assert from 'node:assert/strict'
import { conditionOf } from '../../crds/conditions.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import {
  CREATED_MS,
  deletionAsked,
  type EnvironmentModifier,
  edited,
  environment,
  everReady,
  FIGURES,
  inPhase,
  instance,
  isoAfter,
  metadata,
  observedOf,
  preview,
  request,
  spec,
  status,
  suspended,
} from '../../testkit/gen.ts'
import { operatorConfig } from '../config/config.ts'
import { fails, holds } from './conditions.ts'
import { decide } from './decide.ts'
import { figuresText } from './defaults.ts'

const { limits } = operatorConfig({})
const STARTED = { startedWith: figuresText(FIGURES) }
const PROVEN = { ...STARTED, provenAtMs: CREATED_MS, credentialsApplied: true }
const OK = { result: 'ok' } as const
const reconcilingSince = (seconds: number): EnvironmentModifier =>
  inPhase('suspended', seconds, { Reconciling: holds('Resuming', ''), Suspended: holds('Suspended', '') })
/** What has seen its attempt begin: recollections of an attempt name its beginning. */
const attempt = (seconds: number) => ({ since: isoAfter(seconds), failuresBefore: 0, stopped: false })

interface Row {
  readonly because: string
  readonly given: readonly EnvironmentModifier[]
  readonly seen?: Parameters<typeof observedOf>[1]
  /** Seconds after creation. */
  readonly at?: number
  readonly phase: string | undefined
  readonly action?: string
  /** `Type=Status/Reason`, or `Type=absent`. */
  readonly conditions?: readonly string[]
  readonly operation?: string
}

const ROWS: readonly Row[] = [
  // Never ready
  {
    because: 'a new resource gets its finalizer before anything is made, and no status yet',
    given: [metadata({ finalizers: [] })],
    phase: undefined,
    action: 'add-finalizer',
  },
  {
    because: 'the first status says that work goes on, so that nobody takes it for done',
    given: [request('create')],
    seen: { instance: instance('absent'), credentials: 'absent' },
    phase: 'provisioning',
    action: 'make-credentials',
    conditions: ['Ready=False/Provisioning', 'Reconciling=True/Provisioning', 'Stalled=absent'],
    operation: 'running 1',
  },
  {
    because: 'passwords come before the process: a database without them could be reached by nobody',
    given: [inPhase('provisioning')],
    seen: { instance: instance('absent') },
    phase: 'provisioning',
    action: 'start',
  },
  {
    because: 'a start that is under way is waited for',
    given: [inPhase('provisioning')],
    seen: { instance: instance('starting'), recollection: { ...STARTED, attempt: attempt(0) } },
    phase: 'provisioning',
  },
  {
    because: 'before the first sign-in the passwords are set without asking',
    given: [inPhase('provisioning')],
    seen: { instance: instance('running'), recollection: { ...STARTED, attempt: attempt(0) } },
    phase: 'provisioning',
    action: 'apply-credentials',
  },
  {
    because: 'a sign-in makes it ready, and its request done',
    given: [request('create'), inPhase('provisioning')],
    seen: {
      instance: instance('running'),
      signIn: OK,
      recollection: { ...PROVEN, attempt: attempt(0) },
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'Reconciling=absent', 'CredentialsReady=True/SignInProven'],
    operation: 'succeeded 1',
  },
  {
    because: 'four failed starts are not five',
    given: [inPhase('provisioning')],
    seen: {
      instance: instance('failed', { startFailures: 4, failure: { reason: 'Crashed', message: 'It ended' } }),
      recollection: { ...STARTED, attempt: attempt(0) },
    },
    phase: 'provisioning',
    conditions: ['DatabaseReachable=False/Crashed', 'Ready=False/Crashed'],
  },
  {
    because: 'five failed starts end the attempt; the request goes on, since it is tried again',
    given: [request('create'), inPhase('provisioning')],
    seen: {
      instance: instance('failed', { startFailures: 5, failure: { reason: 'PortTaken', message: 'Port 1 is taken' } }),
      recollection: { ...STARTED, attempt: attempt(0) },
    },
    phase: 'failed_recoverable',
    conditions: ['Ready=False/PortTaken', 'Reconciling=True/Retrying', 'Stalled=absent'],
    operation: 'running 1 Port 1 is taken',
  },
  {
    because: 'a full disk is about the storage',
    given: [inPhase('provisioning')],
    seen: {
      instance: instance('failed', { startFailures: 1, failure: { reason: 'DiskFull', message: 'No space' } }),
      recollection: { ...STARTED, attempt: attempt(0) },
    },
    phase: 'provisioning',
    conditions: ['StorageReady=False/DiskFull'],
  },
  {
    because: 'the deadline ends an attempt that only waits',
    given: [inPhase('provisioning')],
    seen: { instance: instance('starting'), recollection: { ...STARTED, attempt: attempt(0) } },
    at: 300,
    phase: 'failed_recoverable',
    conditions: ['Ready=False/DeadlineExceeded'],
  },
  {
    because: 'a failed environment rests',
    given: [inPhase('failed_recoverable', 0, { Ready: fails('PortTaken', 'x') }), status({ attempts: 1 })],
    seen: { instance: instance('failed') },
    at: 4,
    phase: 'failed_recoverable',
    conditions: ['Reconciling=True/Retrying'],
  },
  {
    because: 'and is tried again after its rest, as never ready',
    given: [request('create'), inPhase('failed_recoverable'), status({ attempts: 1, operation: running('create') })],
    seen: { instance: instance('failed') },
    at: 5,
    phase: 'provisioning',
    action: 'start',
    operation: 'running 2',
  },
  {
    because: 'each attempt doubles the rest',
    given: [inPhase('failed_recoverable'), status({ attempts: 3 })],
    seen: { instance: instance('failed') },
    at: 19,
    phase: 'failed_recoverable',
  },
  {
    because: 'a resume is not made to wait',
    given: [inPhase('failed_recoverable'), everReady, status({ attempts: 9 }), request('resume', 2), edited],
    seen: { instance: instance('failed') },
    at: 1,
    phase: 'updating',
    action: 'start',
    operation: 'running 1',
  },
  {
    because: 'a clock that was set back does not make a rest of hours',
    given: [inPhase('failed_recoverable', 7200), status({ attempts: 1 })],
    seen: { instance: instance('failed') },
    at: 0,
    phase: 'provisioning',
    action: 'start',
  },

  // Ready
  {
    because: 'one that answers is left alone',
    given: [inPhase('ready'), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    conditions: ['Ready=True/Ready'],
  },
  ...(['failed', 'starting', 'stopped', 'stopping', 'unresponsive'] as const).map(
    (state): Row => ({
      because: `a ready environment whose process is ${state} does not answer`,
      given: [inPhase('ready'), everReady],
      seen: { instance: instance(state), recollection: PROVEN },
      phase: 'updating',
      ...(state === 'stopped' ? { action: 'start' } : {}),
      conditions: ['Ready=False/*', 'Reconciling=True/Updating'],
    }),
  ),
  {
    because: 'one sign-in that met nobody changes nothing, not even a condition',
    given: [inPhase('ready', 0, { Ready: holds('Ready', '') }), everReady],
    seen: {
      instance: instance('running'),
      signIn: { result: 'unreachable' },
      recollection: { ...STARTED, failedSignIns: 1 },
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'DatabaseReachable=absent'],
  },
  {
    because: 'three in a row do',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('running'),
      signIn: { result: 'unreachable' },
      recollection: { ...STARTED, failedSignIns: 3 },
    },
    phase: 'updating',
    conditions: ['DatabaseReachable=False/SignInFailed'],
  },
  {
    because: 'a refused password is set again while it stays ready',
    given: [inPhase('ready', 0, { Ready: holds('Ready', '') }), everReady],
    seen: {
      instance: instance('running'),
      signIn: { result: 'refused' },
      recollection: { ...STARTED, failedSignIns: 1 },
    },
    phase: 'ready',
    action: 'apply-credentials',
    conditions: ['Ready=True/Ready'],
  },
  {
    because: 'a password refused again after it was set is an outage',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('running'),
      signIn: { result: 'refused' },
      recollection: { ...STARTED, failedSignIns: 2 },
    },
    phase: 'updating',
    action: 'apply-credentials',
    conditions: ['CredentialsReady=False/SignInRefused'],
  },
  {
    because: 'other figures need a restart, which is an update',
    given: [inPhase('ready'), everReady, spec({ resources: { ...FIGURES, memory: '1Gi' } }), edited],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'updating',
    action: 'start',
  },
  {
    because: 'a bigger disk needs none',
    given: [inPhase('ready'), everReady, spec({ resources: { ...FIGURES, storage: '2Gi' } }), edited],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    action: 'start',
    conditions: ['Reconciling=True/Starting'],
  },
  {
    because: 'figures that leave the spec stay in force: other defaults of the operator restart nothing',
    given: [inPhase('ready'), everReady, spec({ resources: {} }), edited],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
  },
  {
    because: 'what is lost is never made anew',
    given: [inPhase('ready'), everReady],
    seen: { instance: instance('absent') },
    phase: 'updating',
    conditions: ['StorageReady=False/DataMissing'],
  },
  {
    because: 'and no attempt follows before somebody puts it back; its request has failed',
    given: [inPhase('updating'), everReady, request('resume')],
    seen: { instance: instance('absent') },
    phase: 'failed_recoverable',
    conditions: ['Stalled=True/DataMissing', 'Reconciling=absent'],
    operation: 'failed 1 The data of this environment is not where it was left; it is not initialized anew',
  },
  {
    because: 'nor after any time',
    given: [inPhase('failed_recoverable'), everReady],
    seen: { instance: instance('absent') },
    at: 9_999,
    phase: 'failed_recoverable',
    conditions: ['Stalled=True/DataMissing'],
  },

  // Updating
  {
    because: 'an attempt begins with a start, which makes the host try at once',
    given: [inPhase('updating'), everReady],
    seen: { instance: instance('failed'), recollection: STARTED },
    phase: 'updating',
    action: 'start',
  },
  {
    because: 'back once a client signs in',
    given: [inPhase('updating'), everReady],
    seen: { instance: instance('running'), signIn: OK, recollection: { ...PROVEN, attempt: attempt(0) } },
    phase: 'ready',
  },
  {
    because: 'one that hangs is waited for in its first attempt',
    given: [inPhase('updating'), everReady, status({ attempts: 1 })],
    seen: { instance: instance('unresponsive'), recollection: { ...STARTED, attempt: attempt(0) } },
    phase: 'updating',
    conditions: ['DatabaseReachable=False/Unresponsive'],
  },
  {
    because: 'and restarted in a later one',
    given: [inPhase('updating'), everReady, status({ attempts: 2 })],
    seen: { instance: instance('unresponsive'), recollection: { ...STARTED, attempt: attempt(0) } },
    phase: 'updating',
    action: 'stop',
  },
  {
    because: 'but once',
    given: [inPhase('updating'), everReady, status({ attempts: 2 })],
    seen: {
      instance: instance('unresponsive'),
      recollection: { ...STARTED, attempt: { ...attempt(0), stopped: true } },
    },
    phase: 'updating',
  },
  {
    because: 'failures of earlier attempts do not count',
    given: [inPhase('updating'), everReady, status({ attempts: 2 })],
    seen: {
      instance: instance('failed', { startFailures: 9 }),
      recollection: { ...STARTED, attempt: { ...attempt(0), failuresBefore: 5 } },
    },
    phase: 'updating',
  },
  {
    because: 'a failed one that came back by itself need not rest',
    given: [inPhase('failed_recoverable'), everReady, status({ attempts: 9 })],
    seen: { instance: instance('running'), signIn: OK, recollection: { ...PROVEN, attempt: attempt(0) } },
    at: 1,
    phase: 'updating',
  },

  // Suspend and resume
  ...(['ready', 'updating', 'failed_recoverable'] as const).map(
    (phase): Row => ({
      because: `${phase} stays what it is until no process is left`,
      given: [inPhase(phase), everReady, suspended, request('suspend', 2), edited],
      seen: { instance: instance('running') },
      phase,
      action: 'stop',
      conditions: ['Ready=False/Suspending', 'Reconciling=True/Suspending'],
      operation: 'running 1',
    }),
  ),
  ...(['ready', 'updating', 'failed_recoverable'] as const).map(
    (phase): Row => ({
      because: `${phase} is suspended once no process is left`,
      given: [inPhase(phase), everReady, suspended, request('suspend', 2), edited],
      seen: { instance: instance('stopped', { cleanStop: true }) },
      phase: 'suspended',
      conditions: ['Ready=False/Suspended', 'Suspended=True/Suspended', 'Reconciling=absent', 'UncleanStop=absent'],
      operation: 'succeeded 1',
    }),
  ),
  {
    because: 'a stop without a shutdown checkpoint is told',
    given: [inPhase('ready'), everReady, suspended],
    seen: { instance: instance('stopped', { cleanStop: false }) },
    phase: 'suspended',
    conditions: ['UncleanStop=True/NoShutdownCheckpoint'],
  },
  {
    because: 'what was never ready is brought up before it is suspended',
    given: [inPhase('provisioning'), suspended],
    seen: { instance: instance('absent') },
    phase: 'provisioning',
    action: 'start',
  },
  {
    because: 'what should be stopped and runs is stopped, and called suspended all the while',
    given: [inPhase('suspended'), everReady, suspended],
    seen: { instance: instance('running') },
    phase: 'suspended',
    action: 'stop',
  },
  {
    because: 'a resume stays suspended while Postgres starts',
    given: [inPhase('suspended'), everReady, request('resume', 3), edited],
    seen: { instance: instance('stopped') },
    phase: 'suspended',
    action: 'start',
    conditions: ['Reconciling=True/Resuming'],
    operation: 'running 1',
  },
  {
    because: 'a resume is done with a sign-in',
    given: [reconcilingSince(0), everReady, request('resume', 3)],
    seen: { instance: instance('running'), signIn: OK, recollection: { ...PROVEN, attempt: attempt(0) } },
    phase: 'ready',
    conditions: ['Suspended=absent', 'Ready=True/Ready'],
    operation: 'succeeded 1',
  },
  {
    because: 'the deadline of a resume counts from its beginning, not from the suspension',
    given: [reconcilingSince(90_000), status({ phaseTransitionTime: isoAfter(0) }), everReady],
    seen: { instance: instance('starting'), recollection: { ...STARTED, attempt: attempt(90_000) } },
    at: 90_010,
    phase: 'suspended',
  },
  {
    because: 'a resume that takes too long has failed',
    given: [reconcilingSince(90_000), everReady],
    seen: { instance: instance('starting'), recollection: { ...STARTED, attempt: attempt(90_000) } },
    at: 90_300,
    phase: 'failed_recoverable',
    conditions: ['Suspended=absent', 'Ready=False/DeadlineExceeded'],
  },
  {
    because: 'a suspend that somebody took back has been overtaken',
    given: [inPhase('ready'), everReady, request('suspend', 2)],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    operation: 'failed 1 Overtaken by a later change',
  },
  {
    because: 'an outcome never changes',
    given: [
      inPhase('ready'),
      everReady,
      request('create'),
      status({ operation: { ...running('create'), outcome: 'failed', message: 'x' } }),
    ],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    operation: 'failed 1 x',
  },

  // What comes before all that
  ...(['requested', 'provisioning', 'ready', 'suspended', 'updating', 'failed_recoverable'] as const).map(
    (phase): Row => ({
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
    seen: { namespaceLabels: { 'svc.internal/organization': 'evil', 'svc.internal/project': 'shop' } },
    phase: 'requested',
    conditions: ['Stalled=True/NamespaceMismatch'],
  },
  {
    because: 'a namespace that says the same is',
    given: [],
    seen: {
      namespaceLabels: { 'svc.internal/organization': 'acme', 'svc.internal/project': 'shop' },
      instance: instance('absent'),
    },
    phase: 'provisioning',
    action: 'start',
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
    seen: { namespaceLabels: {} },
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
    conditions: ['Expired=absent'],
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

function running(verb: string) {
  return { id: `op_${verb}1`, seq: 1, outcome: 'running' as const, attempts: 1 }
}

describe('decide', () => {
  for (const row of ROWS)
    it(row.because, () => {
      const made = environment(...row.given)
      const { status: next, action } = decide(observedOf(made, row.seen), CREATED_MS + (row.at ?? 0) * 1000, limits)
      assert.equal(next.phase, row.phase)
      assert.equal(action?.kind, row.action)
      for (const expected of row.conditions ?? []) {
        const [type = '', said = ''] = expected.split('=')
        const condition = conditionOf(next.conditions, type as 'Ready')
        const actual = condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
        if (said.endsWith('*')) assert.ok(actual.startsWith(said.slice(0, -1)), `${type} is ${actual}`)
        else assert.equal(actual, said, type)
      }
      if (row.operation !== undefined) {
        const { outcome, attempts, message } = next.operation ?? {}
        assert.equal([outcome, attempts, message].filter(Boolean).join(' '), row.operation)
      }
    })

  it('has Reconciling or Stalled whenever it is not as it should be, never both, and neither when it is', () => {
    for (const row of ROWS) {
      const made = environment(...row.given)
      const { status: next, action } = decide(observedOf(made, row.seen), CREATED_MS + (row.at ?? 0) * 1000, limits)
      if (action?.kind === 'add-finalizer' || action?.kind === 'release' || action?.kind === 'expire') continue
      const [ready, reconciling, stalled] = (['Ready', 'Reconciling', 'Stalled'] as const).map(type =>
        conditionOf(next.conditions, type),
      )
      assert.ok(reconciling === undefined || stalled === undefined, row.because)
      for (const condition of next.conditions ?? [])
        assert.equal(condition.observedGeneration, made.metadata.generation, row.because)
      if (next.phase === 'provisioning' || next.phase === 'updating' || next.phase === 'failed_recoverable') {
        assert.equal(ready?.status, 'False', row.because)
        assert.ok((reconciling ?? stalled)?.status === 'True', row.because)
      }
    }
  })

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
