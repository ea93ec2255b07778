/** What a kubelet says about a pod. Pure but for the clock. */
import type { V1Pod } from '@kubernetes/client-node'

/** Where the containers of a pod stand. */
export interface PodState {
  readonly how: 'ready' | 'crashed' | 'ended'
  /** Of containers that do not run. */
  readonly exitCode: number
  readonly restarts: number
  /** What they ended with before they were started again. */
  readonly lastExit: number | undefined
  readonly ip: string
}

export const podStatus = (pod: V1Pod, { how, exitCode, restarts, lastExit, ip }: PodState): object => {
  const now = new Date().toISOString()
  const ready = how === 'ready'
  const ended = (code: number): object => ({
    terminated: { exitCode: code, reason: code === 0 ? 'Completed' : 'Error', startedAt: now, finishedAt: now },
  })
  const condition = (type: string, met: boolean): object => ({
    type,
    status: met ? 'True' : 'False',
    lastTransitionTime: now,
  })
  const statusOf = ({ name, image }: { name: string; image?: string }, isReady: boolean): object => ({
    name,
    image: image ?? '',
    imageID: `faked@sha256:${'0'.repeat(64)}`,
    containerID: `faked://${pod.metadata!.uid}-${name}-${restarts}`,
    ready: isReady,
    started: ready,
    restartCount: restarts,
  })
  return {
    phase: how !== 'ended' ? 'Running' : exitCode === 0 ? 'Succeeded' : 'Failed',
    podIP: ip,
    podIPs: [{ ip }],
    startTime: pod.status?.startTime ?? now,
    initContainerStatuses: (pod.spec!.initContainers ?? []).map(container => ({
      ...statusOf(container, true),
      restartCount: 0,
      state: ended(0),
    })),
    containerStatuses: pod.spec!.containers.map(container => ({
      ...statusOf(container, ready),
      state: ready ? { running: { startedAt: now } } : ended(exitCode),
      ...(lastExit === undefined ? {} : { lastState: ended(lastExit) }),
    })),
    conditions: [
      condition('PodScheduled', true),
      condition('Initialized', true),
      condition('ContainersReady', ready),
      condition('Ready', ready),
    ],
  }
}
