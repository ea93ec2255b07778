/** What a kubelet says about a pod. Pure but for the clock. */
import type { V1Pod } from '@kubernetes/client-node'

/** How containers ended. */
export interface Exit {
  readonly exitCode: number
  /** Why, as a kubelet says it, e.g. `OOMKilled`; by default what the code says. */
  readonly reason?: string
  /** What they wrote last. */
  readonly message?: string
}

/** Where the containers of a pod stand. */
export interface PodState {
  readonly how: 'ready' | 'crashed' | 'ended'
  /** Of containers that do not run. */
  readonly exit: Exit
  readonly restarts: number
  /** How they ended before they were started again. */
  readonly lastExit: Exit | undefined
  readonly ip: string
}

export const podStatus = (pod: V1Pod, { how, exit, restarts, lastExit, ip }: PodState): object => {
  const now = new Date().toISOString()
  const ready = how === 'ready'
  const ended = ({ exitCode, reason, message }: Exit): object => ({
    terminated: {
      exitCode,
      reason: reason ?? (exitCode === 0 ? 'Completed' : 'Error'),
      ...(message === undefined ? {} : { message }),
      startedAt: now,
      finishedAt: now,
    },
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
    phase: how !== 'ended' ? 'Running' : exit.exitCode === 0 ? 'Succeeded' : 'Failed',
    podIP: ip,
    podIPs: [{ ip }],
    startTime: pod.status?.startTime ?? now,
    initContainerStatuses: (pod.spec!.initContainers ?? []).map(container => ({
      ...statusOf(container, true),
      restartCount: 0,
      state: ended({ exitCode: 0 }),
    })),
    containerStatuses: pod.spec!.containers.map(container => ({
      ...statusOf(container, ready),
      state: ready ? { running: { startedAt: now } } : ended(exit),
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
