import assert from 'node:assert/strict'
import type { V1ContainerStatus, V1PodStatus } from '@kubernetes/client-node'
import { judgeLastWords } from '../../../runtime/postgres/last-words.ts'
import { exitOf, failureIn, isBackingOff, isLost, isUnresponsive, runOf, unscheduledPatienceMs } from './judge-pod.ts'
import type { Node, Pod } from './object-types.ts'

const pod = (status: Partial<V1ContainerStatus> | undefined, rest: Partial<V1PodStatus> = {}): Pod => ({
  metadata: { name: 'main-1-0' },
  status: {
    ...rest,
    ...(status === undefined
      ? {}
      : {
          containerStatuses: [{ name: 'postgres', image: 'x', imageID: 'y', ready: false, restartCount: 0, ...status }],
        }),
  },
})
const ended = (exitCode: number, message = '', reason = 'Error') => ({ terminated: { exitCode, message, reason } })
const waiting = (reason: string, message = '') => ({ waiting: { reason, message } })

const NOW = Date.parse('2030-01-01T00:01:00Z')
const unplaced = (since: string): Pod =>
  pod(undefined, {
    conditions: [
      // As it is on the wire.
      { type: 'PodScheduled', status: 'False', message: '0/1 nodes', lastTransitionTime: since as unknown as Date },
    ],
  })

describe('a pod’s failure', () => {
  const rows: readonly (readonly [why: string, pod: Pod, reason: string | undefined])[] = [
    ['a pod that starts has none', pod({ state: waiting('ContainerCreating') }), undefined],
    ['nor one that nobody placed yet', pod(undefined), undefined],
    ['no node takes it', unplaced('2030-01-01T00:00:50Z'), 'Unschedulable'],
    ['no node takes it, since a moment: its volume may just be made', unplaced('2030-01-01T00:00:51Z'), undefined],
    ['its image is not there', pod({ state: waiting('ImagePullBackOff') }), 'ImagePullFailed'],
    ['its image may not be pulled', pod({ state: waiting('ErrImageNeverPull') }), 'ImagePullFailed'],
    ['its Secret is gone', pod({ state: waiting('CreateContainerConfigError') }), 'ContainerConfigError'],
    ['it was killed for its memory', pod({ state: ended(137, '', 'OOMKilled') }), 'OutOfMemory'],
    [
      'the disk is full',
      pod({
        state: waiting('CrashLoopBackOff'),
        lastState: ended(1, 'FATAL:  could not write: No space left on device'),
      }),
      'DiskFull',
    ],
    ['the volume is empty', pod({ state: waiting('CrashLoopBackOff'), lastState: ended(66) }), 'DataMissing'],
    ['another server has the volume', pod({ state: ended(75) }), 'VolumeInUse'],
    ['its last words', pod({ state: ended(1, 'LOG:  a\nFATAL:  lock file exists\n') }), 'StartFailed'],
    ['it crashed without a word', pod({ state: ended(139) }), 'Crashed'],
    ['it ended well', pod({ state: ended(0, '', 'Completed') }), undefined],
    ['a former end of one that runs', pod({ state: { running: {} }, lastState: ended(1) }), undefined],
  ]
  for (const [why, given, reason] of rows)
    it(`${reason ?? 'none'}: ${why}`, () => {
      const failure = failureIn(given, text => judgeLastWords(text, 5432), NOW)
      assert.equal(failure?.reason, reason)
      if (failure !== undefined) assert.match(failure.reason, /^[A-Z][A-Za-z0-9]*$/)
    })

  it('is looked for again when the patience with a scheduler ends, whatever its clock says', () => {
    assert.equal(unscheduledPatienceMs(unplaced('2030-01-01T00:00:53Z'), NOW), 3_000)
    assert.equal(unscheduledPatienceMs(unplaced('2030-01-01T01:00:00Z'), NOW), 10_000)
    assert.equal(unscheduledPatienceMs(pod({ state: { running: {} } }), NOW), undefined)
  })

  it('is told in one bounded line', () => {
    const message = `a\nb ${'x'.repeat(2000)}`
    const failure = failureIn(pod({ state: waiting('ErrImagePull', message) }), () => undefined, NOW)
    assert.ok(failure!.message.length < 400 && !failure!.message.includes('\n'))
  })
})

describe('how a server ended', () => {
  it('is clean by exit code 0 alone', () => {
    assert.equal(exitOf(pod({ state: ended(0) })), 'clean')
    assert.equal(exitOf(pod({ state: ended(137) })), 'unclean')
    assert.equal(exitOf(pod({ state: { running: {} }, lastState: ended(0) })), undefined)
    assert.equal(exitOf(pod({ state: waiting('CrashLoopBackOff'), lastState: ended(1) })), 'unclean')
    assert.equal(exitOf(pod(undefined, { phase: 'Failed' })), 'unclean')
    assert.equal(exitOf(pod(undefined)), undefined)
  })
})

describe('a pod’s server', () => {
  it('is told from the next one by its container', () => {
    const running = { state: { running: {} }, containerID: 'containerd://1', restartCount: 2 }
    assert.deepEqual(runOf(pod(running)), { id: 'containerd://1', restarts: 2 })
    assert.equal(runOf(pod({ ...running, state: ended(1) })), undefined)
  })

  it('is unresponsive once kubelet’s probes fail after they had succeeded', () => {
    const state = { running: { startedAt: '2026-11-27T12:00:10Z' as unknown as Date } }
    const judged = (started: boolean, ready: boolean, since: string): boolean => {
      const lastTransitionTime = since as unknown as Date
      const conditions = [{ type: 'ContainersReady', status: ready ? 'True' : 'False', lastTransitionTime }]
      return isUnresponsive(pod({ state, started, ready }, { conditions }))
    }
    const [before, later] = ['2026-11-27T12:00:09Z', '2026-11-27T12:01:00Z']
    assert.equal(judged(true, false, later), true)
    assert.equal(judged(true, true, later), false)
    assert.equal(judged(false, false, later), false)
    // Its startup probe has succeeded, its first readiness probe is on its way.
    assert.equal(judged(true, false, before), false)
    assert.equal(judged(true, false, '2026-11-27T12:00:10Z'), false)
  })

  it('backs off when kubelet says so', () => {
    assert.equal(isBackingOff(pod({ state: waiting('CrashLoopBackOff') })), true)
    assert.equal(isBackingOff(pod({ state: waiting('ContainerCreating') })), false)
  })
})

describe('a node', () => {
  const node = (status: string): Node => ({ status: { conditions: [{ type: 'Ready', status }] } })
  it('is lost unless it says that it is ready', () => {
    assert.deepEqual([node('True'), node('Unknown'), node('False'), undefined].map(isLost), [false, true, true, true])
  })
})
