/** What is told of an instance, from its objects and what the host found out itself. Pure. */
import type { Endpoint } from '../../../crds/environment.ts'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import type { InstanceFailure, InstanceState, ObservedInstance } from '../host.ts'
import { isInitialized } from './build-claim.ts'
import { externalOf, isUnproven } from './external-door.ts'
import type { Exposure } from './host-settings.ts'
import type { InstanceNames } from './instance-names.ts'
import { exitOf, isReady, isUnresponsive, restartsOf, runOf } from './judge-pod.ts'
import { policyOf } from './judge-volume.ts'
import type { Claim, Pod, Service, StatefulSet } from './object-types.ts'
import { figuresText, parseWanted } from './wanted.ts'

/** An instance's objects, each as it was last seen. */
export interface InstanceObjects {
  readonly statefulSet: StatefulSet | undefined
  readonly pod: Pod | undefined
  readonly service: Service | undefined
  readonly claim: Claim | undefined
}

/** What the host knows beyond the objects. */
export interface Findings {
  /** The run that answered and was made ready by us. */
  readonly answered: { readonly id: string; readonly restarts: number } | undefined
  /** This process has not looked at it yet, as right after its start. */
  readonly unlooked: boolean
  readonly failure: InstanceFailure | undefined
  /** What the cluster refused when it was last tried to put it right. */
  readonly refused: InstanceFailure | undefined
  readonly storageProblem: InstanceFailure | undefined
  readonly exposure: Exposure
  /** PEM of the authorities that clients may trust. */
  readonly authorities: string
}

const annotation = (of: Claim | StatefulSet | Pod | undefined, name: string): string | undefined =>
  of?.metadata?.annotations?.[name]

export const observationOf = (names: InstanceNames, objects: InstanceObjects, findings: Findings): ObservedInstance => {
  const { statefulSet, claim, pod } = objects
  if (statefulSet === undefined && pod === undefined && (claim === undefined || isRetained(claim)))
    return { state: 'absent', initialized: false, startFailures: 0 }
  const wanted = parseWanted(annotation(statefulSet, ANNOTATIONS.wanted))
  const seen = stateOf(objects, findings)
  // What it lacks is not on its way.
  const state = seen === 'starting' && findings.refused !== undefined ? 'failed' : seen
  const lineage = annotation(claim, ANNOTATIONS.lineage)
  const stop = annotation(claim, ANNOTATIONS.lastStop)
  const image = wanted?.spec.image
  const node = state === 'running' ? pod?.spec?.nodeName : undefined
  const inTrouble = state === 'failed' || state === 'starting' || state === 'stopping'
  const failure = inTrouble ? (findings.failure ?? findings.refused) : undefined
  const refused = inTrouble ? undefined : findings.refused
  return {
    state,
    initialized: isInitialized(claim),
    ...(objects.service === undefined ? {} : { endpoint: endpointOf(names, objects.service, findings) }),
    ...(image === undefined ? {} : { image }),
    ...(node === undefined ? {} : { node }),
    ...(lineage === undefined ? {} : { lineage }),
    ...(failure === undefined ? {} : { failure }),
    ...(findings.storageProblem === undefined ? {} : { storageProblem: findings.storageProblem }),
    ...(refused === undefined ? {} : { refused }),
    startFailures: failedStarts(pod, findings),
    ...(claim === undefined || isRetained(claim) ? {} : { deletionPolicy: policyOf(claim) ?? 'untold' }),
    ...(state === 'stopped' && stop !== undefined ? { cleanStop: stop === 'clean' } : {}),
  }
}

/** A claim that an admin may do with as he likes: its environment is gone. */
export const isRetained = (claim: Claim): boolean => annotation(claim, ANNOTATIONS.retainedUntil) !== undefined

/** A claim that goes with its namespace, after its environment: nobody spares its volume. */
export const isAbandoned = (claim: Claim): boolean => annotation(claim, ANNOTATIONS.abandoned) === 'true'

const stateOf = ({ statefulSet, pod, claim }: InstanceObjects, findings: Findings): InstanceState => {
  const { answered, unlooked, failure } = findings
  const wanted = parseWanted(annotation(statefulSet, ANNOTATIONS.wanted))
  if (wanted === undefined) return pod === undefined ? 'stopped' : isGoing(pod) ? 'stopping' : 'starting'
  if (!wanted.running) return pod === undefined && hasNoPods(statefulSet) ? 'stopped' : 'stopping'
  if (failure !== undefined) return 'failed'
  if (pod === undefined || isGoing(pod)) return 'starting'
  // From the moment that other figures are wanted the old server does not count.
  if (annotation(pod, ANNOTATIONS.figures) !== figuresText(wanted.spec)) return 'starting'
  const run = runOf(pod)
  if (run === undefined) return 'starting'
  // An operator that starts says nothing about servers that run: kubelet's word counts for one that was served before.
  const isServed = unlooked && isInitialized(claim) && isReady(pod)
  if (run.id !== answered?.id && !isServed) return 'starting'
  return isUnresponsive(pod) ? 'unresponsive' : 'running'
}

const isGoing = (pod: Pod): boolean => pod.metadata?.deletionTimestamp !== undefined

/** The controller has seen that none is wanted, and made none meanwhile. */
const hasNoPods = (statefulSet: StatefulSet | undefined): boolean =>
  (statefulSet?.status?.observedGeneration ?? 0) >= (statefulSet?.metadata?.generation ?? 0) &&
  (statefulSet?.status?.replicas ?? 0) === 0

/** Starts in a row without an answer. */
const failedStarts = (pod: Pod | undefined, { answered }: Findings): number => {
  if (pod === undefined) return 0
  const restarts = restartsOf(pod)
  const run = runOf(pod)
  if (run !== undefined && run.id === answered?.id) return 0
  const failed = restarts - (answered === undefined || answered.restarts > restarts ? 0 : answered.restarts + 1)
  return Math.max(0, failed + (run === undefined && exitOf(pod) === 'unclean' ? 1 : 0))
}

const endpointOf = (names: InstanceNames, service: Service, { exposure, authorities }: Findings): Endpoint => {
  const external = isUnproven(service, exposure) ? undefined : externalOf(service, exposure)
  return {
    host: names.host,
    port: POSTGRES_PORT,
    sslmode: 'verify-full',
    ...(external === undefined ? {} : { external }),
    caCertificate: authorities,
  }
}
