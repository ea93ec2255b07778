import { attempt, type DecisionRow, describeDecisions, PROVEN, running, STARTED } from '../../testkit/decision-table.ts'
import {
  type EnvironmentModifier,
  edited,
  everReady,
  inPhase,
  instance,
  isoAfter,
  request,
  status,
  suspended,
} from '../../testkit/gen.ts'
import { holds } from './conditions.ts'

const OK = { result: 'ok' } as const
const reconcilingSince = (seconds: number): EnvironmentModifier =>
  inPhase('suspended', seconds, { Reconciling: holds('Resuming', ''), Suspended: holds('Suspended', '') })

const ROWS: readonly DecisionRow[] = [
  {
    because: 'a stop that a lost node keeps from ending says so, and is not forced',
    given: [inPhase('ready'), everReady, suspended, edited],
    seen: {
      instance: instance('stopping', { failure: { reason: 'NodeLost', message: 'Node a does not answer' } }),
    },
    phase: 'ready',
    conditions: ['Ready=False/NodeLost', 'DatabaseReachable=False/NodeLost', 'Reconciling=True/Suspending'],
  },
  // Suspend and resume
  ...(['ready', 'updating', 'failed_recoverable'] as const).map(
    (phase): DecisionRow => ({
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
    (phase): DecisionRow => ({
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
]

describe('decide, to suspend and resume', () => describeDecisions(ROWS))
