import { attempt, type DecisionRow, describeDecisions, PROVEN, running, STARTED } from '../../testkit/decision-table.ts'
import { edited, everReady, FIGURES, inPhase, instance, metadata, request, spec, status } from '../../testkit/gen.ts'
import { fails, holds } from './conditions.ts'

const OK = { result: 'ok' } as const
const NEARLY_FULL = inPhase('ready', 0, { StorageReady: fails('DiskNearlyFull', 'The disk is nearly full') })

const ROWS: readonly DecisionRow[] = [
  {
    because: 'a lost node is told, and nothing is done to what runs there',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('failed', { failure: { reason: 'NodeLost', message: 'Node a does not answer' } }),
      recollection: PROVEN,
    },
    phase: 'updating',
    conditions: ['Ready=False/NodeLost', 'DatabaseReachable=False/NodeLost', 'Reconciling=True/Updating'],
  },
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
    because: 'a server that answers after the deadline is not given up for what nobody got round to',
    given: [inPhase('provisioning')],
    seen: { instance: instance('running'), recollection: { ...STARTED, attempt: attempt(0) } },
    at: 900,
    phase: 'provisioning',
    action: 'apply-credentials',
  },
  {
    because: 'but for what was tried in vain',
    given: [inPhase('provisioning')],
    seen: {
      instance: instance('running'),
      recollection: {
        ...STARTED,
        attempt: attempt(0),
        trouble: {
          ...{ action: 'apply-credentials', condition: 'CredentialsReady', reason: 'Refused', message: 'x' },
          ...{ count: 1, retryAtMs: 0, generation: 1 },
        },
      },
    },
    at: 900,
    phase: 'failed_recoverable',
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
    (state): DecisionRow => ({
      because: `a ready environment whose process is ${state} does not answer`,
      given: [inPhase('ready'), everReady],
      seen: { instance: instance(state), recollection: PROVEN },
      phase: 'updating',
      ...(state === 'stopped' ? { action: 'start' } : {}),
      conditions: ['Ready=False/*', 'Reconciling=True/Updating'],
    }),
  ),
  {
    because: 'what the cluster does not let be put right is told, and clients notice nothing of it',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('running', { refused: { reason: 'WriteRefused', message: 'The cluster refuses Service a' } }),
      recollection: PROVEN,
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'Reconciling=True/WriteRefused'],
  },
  {
    because: 'and is not told any more once it was put right',
    given: [inPhase('ready', 0, { Reconciling: holds('WriteRefused', 'The cluster refuses Service a') }), everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'Reconciling=absent'],
  },
  {
    because: 'a disk that fills up is told before it is full, and changes nothing else',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('running', { storage: { freeBytes: 1, totalBytes: 100, low: true } }),
      recollection: PROVEN,
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'StorageReady=False/DiskNearlyFull'],
  },
  {
    because: 'a disk that nobody has looked at since the operator began is called what it was called before',
    given: [NEARLY_FULL, everReady],
    seen: { instance: instance('running'), recollection: PROVEN },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'StorageReady=False/DiskNearlyFull'],
  },
  {
    because: 'a disk that has room again is well',
    given: [NEARLY_FULL, everReady],
    seen: {
      instance: instance('running', { storage: { freeBytes: 50, totalBytes: 100, low: false } }),
      recollection: PROVEN,
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'StorageReady=True/*'],
  },
  {
    because: 'a volume that cannot grow is told and restarts nothing',
    given: [inPhase('ready'), everReady],
    seen: {
      instance: instance('running', { storageProblem: { reason: 'VolumeNotExpandable', message: 'It stays small' } }),
      recollection: PROVEN,
    },
    phase: 'ready',
    conditions: ['Ready=True/Ready', 'StorageReady=False/VolumeNotExpandable'],
  },
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
    conditions: ['Ready=False/Updating', 'Reconciling=True/RestartDue'],
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
]

describe('decide, to bring Postgres up and keep it up', () => describeDecisions(ROWS))
