/** What a pod's status says about the Postgres in it. Pure. */
import type { InstanceFailure } from '../host.ts'
import type { Node, Pod, PodContainer } from './object-types.ts'

/** One run of the server: another one after every restart of its container. */
export interface Run {
  readonly id: string
  readonly restarts: number
}

const statusOf = (pod: Pod): PodContainer | undefined =>
  pod.status?.containerStatuses?.find(({ name }) => name === 'postgres')

const conditionOf = (of: Pod | Node, type: string) =>
  of.status?.conditions?.find((condition: { type: string }) => condition.type === type)

/** The server's run, while its container runs. */
export const runOf = (pod: Pod): Run | undefined => {
  const status = statusOf(pod)
  return status?.state?.running === undefined || status.containerID === undefined
    ? undefined
    : { id: status.containerID, restarts: status.restartCount }
}

/** Kubelet's probes succeed. */
export const isReady = (pod: Pod): boolean => statusOf(pod)?.ready === true

export const restartsOf = (pod: Pod): number => statusOf(pod)?.restartCount ?? 0

/**
 * Kubelet's probes failed after they had succeeded. One that has just started is not ready either, until its first probe: it
 * is not since it began, the other one became so later.
 */
export const isUnresponsive = (pod: Pod): boolean => {
  const status = statusOf(pod)
  if (status?.state?.running === undefined || status.started !== true || status.ready) return false
  const since = conditionOf(pod, 'ContainersReady')?.lastTransitionTime
  return timeOf(since) > timeOf(status.state.running.startedAt)
}

/** Epoch milliseconds of a time as it is on the wire. */
const timeOf = (time: Date | undefined): number => Date.parse(String(time))

/** A container that kubelet waits longer and longer to start again. */
export const isBackingOff = (pod: Pod): boolean => statusOf(pod)?.state?.waiting?.reason === 'CrashLoopBackOff'

/** Whether the server's container ran at all, so that there is an exit code to wait for. */
export const hasRun = (pod: Pod): boolean => {
  const status = statusOf(pod)
  return status?.containerID !== undefined && status.containerID !== ''
}

/** How the server of a pod that stopped ended. undefined: it has not ended, or nobody knows. */
export const exitOf = (pod: Pod): 'clean' | 'unclean' | undefined => {
  const status = statusOf(pod)
  const ended =
    status?.state?.terminated ?? (status?.state?.waiting === undefined ? undefined : status.lastState?.terminated)
  if (ended === undefined) return pod.status?.phase === 'Failed' ? 'unclean' : undefined
  return ended.exitCode === 0 ? 'clean' : 'unclean'
}

/** Reasons for which kubelet does not start a container, and ours. */
const WAITING: Readonly<Record<string, string>> = {
  ErrImagePull: 'ImagePullFailed',
  ImagePullBackOff: 'ImagePullFailed',
  ErrImageNeverPull: 'ImagePullFailed',
  InvalidImageName: 'ImagePullFailed',
  CreateContainerConfigError: 'ContainerConfigError',
  CreateContainerError: 'ContainerConfigError',
  RunContainerError: 'ContainerConfigError',
}

const MESSAGES: Readonly<Record<string, string>> = {
  ImagePullFailed: 'The image of Postgres cannot be pulled',
  ContainerConfigError: 'The container of Postgres cannot be made',
}

/** A scheduler says at once that it found no node, and mostly finds one in a moment: as soon as a volume is made, say. */
const UNSCHEDULED_LATE_MS = 10_000

/** How much longer a pod that no node takes may wait until that is trouble; undefined: it has a node, or nobody looked for one yet. */
export const unscheduledPatienceMs = (pod: Pod, nowMs: number): number | undefined => {
  const scheduled = conditionOf(pod, 'PodScheduled')
  // A scheduler that lost a race may say so of a pod that has its node.
  if (scheduled?.status !== 'False' || pod.spec?.nodeName !== undefined) return undefined
  const waitedMs = nowMs - timeOf(scheduled.lastTransitionTime)
  return waitedMs < UNSCHEDULED_LATE_MS ? Math.min(UNSCHEDULED_LATE_MS - waitedMs, UNSCHEDULED_LATE_MS) : 0
}

/** Exit codes of the image's start script. */
const EXIT_DATA_MISSING = 66
const EXIT_VOLUME_IN_USE = 75

/** What stands in the way of the server, as far as it stands in the pod's status; `lastWords` judges what it said itself. */
export const failureIn = (
  pod: Pod,
  lastWords: (text: string) => InstanceFailure | undefined,
  nowMs: number,
): InstanceFailure | undefined => {
  const patienceMs = unscheduledPatienceMs(pod, nowMs)
  if (patienceMs === 0) {
    const why = tidy(conditionOf(pod, 'PodScheduled')?.message ?? '')
    return { reason: 'Unschedulable', message: `No node takes the pod: ${why}` }
  }
  const status = statusOf(pod)
  const waiting = status?.state?.waiting
  const reason = WAITING[waiting?.reason ?? '']
  if (reason !== undefined) return { reason, message: `${MESSAGES[reason] ?? ''}: ${tidy(waiting?.message ?? '')}` }
  const ended = status?.state?.terminated ?? (waiting === undefined ? undefined : status?.lastState?.terminated)
  if (ended === undefined || ended.exitCode === 0) return undefined
  if (ended.reason === 'OOMKilled')
    return { reason: 'OutOfMemory', message: 'Postgres was killed for using more memory than it has' }
  if (ended.exitCode === EXIT_DATA_MISSING)
    return {
      reason: 'DataMissing',
      message: 'The volume does not hold the data that was left on it; it is not made anew',
    }
  if (ended.exitCode === EXIT_VOLUME_IN_USE)
    return { reason: 'VolumeInUse', message: 'Another Postgres uses the volume; it goes on by itself once that ends' }
  return (
    lastWords(ended.message ?? '') ?? { reason: 'Crashed', message: `Postgres ended with exit code ${ended.exitCode}` }
  )
}

/** Whether a node does not answer: what its pods do is not known, and they are not to be deleted by force. */
export const isLost = (node: Node | undefined): boolean => conditionOf(node ?? {}, 'Ready')?.status !== 'True'

export const nodeLost = (nodeName: string): InstanceFailure => ({
  reason: 'NodeLost',
  message: `Node ${nodeName} does not answer; the pod stays until it does, or until an admin says that it is gone for good`,
})

/** One line for people, of bounded length. */
const tidy = (message: string): string => message.replaceAll(/\s+/g, ' ').trim().slice(0, 300)
