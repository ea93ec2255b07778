/** What an object that was deleted waits for before it goes, as far as people can do something about it. Pure. */
import type { WaitsFor } from '../host.ts'
import { nodeLost } from './judge-pod.ts'
import type { Claim, Pod, StatefulSet } from './object-types.ts'

/** What Kubernetes itself takes away in a moment. */
const PASSING: ReadonlySet<string> = new Set(['foregroundDeletion', 'orphan', 'kubernetes.io/pvc-protection'])
const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection'
/** Nothing that goes as it should takes longer. */
const LATE_MS = 10_000

const deletedMs = ({ metadata }: Pod | Claim | StatefulSet): number => Date.parse(String(metadata?.deletionTimestamp))

const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true

/** Its kubelet has just said so. */
const hasEnded = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'

/** Whether its node should be asked for: it does not say that it is well, or did not end the pod in time. */
export const isNodeSuspect = (pod: Pod, nowMs: number): boolean =>
  pod.spec?.nodeName !== undefined && ((!isReady(pod) && !hasEnded(pod)) || nowMs > deletedMs(pod) + LATE_MS)

/** `lost`: the node that does not answer, if that is so. A pod's deletionTimestamp is set ahead by its grace. */
export const podWaitsFor = (pod: Pod, nowMs: number, lost: string | undefined): WaitsFor | undefined => {
  if (lost !== undefined) return { condition: 'DatabaseReachable', ...nodeLost(lost) }
  if (!(nowMs > deletedMs(pod) + LATE_MS)) return undefined
  return (
    heldBy(pod, 'Pod', 'DatabaseReachable') ?? {
      condition: 'DatabaseReachable',
      reason: 'PodNotEnding',
      message: `Pod ${pod.metadata?.name ?? ''} has not ended in its time; node ${pod.spec?.nodeName ?? ''} answers, and its kubelet says why`,
    }
  )
}

export const statefulSetWaitsFor = (statefulSet: StatefulSet): WaitsFor | undefined =>
  heldBy(statefulSet, 'StatefulSet', 'DatabaseReachable')

/** `users`: the pods that mount it. */
export const claimWaitsFor = (claim: Claim, nowMs: number, users: readonly string[]): WaitsFor | undefined => {
  const held = heldBy(claim, 'PersistentVolumeClaim', 'StorageReady')
  if (held !== undefined || !isClaimLate(claim, nowMs)) return held
  return {
    condition: 'StorageReady',
    reason: 'ClaimInUse',
    message: `Claim ${claim.metadata?.name ?? ''} cannot go while a pod uses it: ${users.length === 0 ? 'kubectl describe names it' : users.join(', ')}`,
  }
}

/** Whether its protection should have let it go by now. */
export const isClaimLate = (claim: Claim, nowMs: number): boolean =>
  claim.metadata?.finalizers?.includes(CLAIM_PROTECTION) === true && nowMs > deletedMs(claim) + LATE_MS

/** Whether it was deleted a moment ago and nothing but its protection holds it: that lets it go by itself. */
export const isClaimGoing = (claim: Claim | undefined, nowMs: number): boolean =>
  claim?.metadata?.deletionTimestamp !== undefined &&
  claim.metadata.finalizers?.every(finalizer => finalizer === CLAIM_PROTECTION) !== false &&
  nowMs <= deletedMs(claim) + LATE_MS

const heldBy = (
  { metadata }: Pod | Claim | StatefulSet,
  kind: string,
  condition: WaitsFor['condition'],
): WaitsFor | undefined => {
  const foreign = metadata?.finalizers?.filter(finalizer => !PASSING.has(finalizer)) ?? []
  if (metadata?.deletionTimestamp === undefined || foreign.length === 0) return undefined
  const message = `${kind} ${metadata.name ?? ''} is held by ${foreign.join(', ')}: whoever put that there has to take it away`
  return { condition, reason: 'FinalizerHeld', message }
}
