/** The port behind which environments' Postgres servers run: local processes, or StatefulSets. */
import type { Endpoint } from '../../crds/environment.ts'
import type { DeletionPolicy, EnvironmentKind } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'

/** Which instance. Folders, sockets and claims are keyed by the uid, never by the name alone. */
export interface InstanceRef {
  readonly key: ResourceKey
  readonly uid: string
  readonly path: EnvironmentPath
}

/** What an instance should be. */
export interface InstanceSpec {
  readonly memoryBytes: number
  readonly storageBytes: number
  readonly cpu: string
  readonly maxConnections: number
  /** The image to run; undefined: the host's own. */
  readonly image: string | undefined
  /** What it is for, where that changes how gently it is stopped and where it runs; undefined: a preview. */
  readonly kind?: EnvironmentKind
  /** As for `setDeletionPolicy`; undefined: what is usual for its kind. */
  readonly deletionPolicy?: DeletionPolicy
}

/**
 * absent: no data, no process. stopped: data, no process, none wanted. starting: launched, does not answer yet.
 * running: answers. unresponsive: a process that failed three probes in a row. stopping: asked to stop.
 * failed: wanted, but no process; `failure` says why, and the host itself tries again with back-off.
 */
export type InstanceState = 'absent' | 'stopped' | 'starting' | 'running' | 'unresponsive' | 'stopping' | 'failed'

/** Why a start failed: `reason` is a condition reason (DiskFull, PortTaken, StartFailed, Crashed, …). */
export interface InstanceFailure {
  readonly reason: string
  readonly message: string
}

/** What is there, read once. */
export interface ObservedInstance {
  readonly state: InstanceState
  /** The data folder or claim holds PG_VERSION: it must never be initialized again. */
  readonly initialized: boolean
  /** Set once a place was given to the instance; kept for its life. */
  readonly endpoint?: Endpoint
  readonly image?: string
  /** The node that it runs on, where there are several. */
  readonly node?: string
  readonly lineage?: string
  readonly failure?: InstanceFailure
  /** Room for its data, where the host knows; `low` changes seldom, the figures all the time. */
  readonly storage?: { readonly freeBytes: number; readonly totalBytes: number; readonly low: boolean }
  /** What is wrong with the storage while Postgres may well be running: a growth that is refused, a claim about to go. */
  readonly storageProblem?: InstanceFailure
  /** What cannot be put right because the cluster refuses it, while Postgres may well be running. */
  readonly refused?: InstanceFailure
  /** Failed starts in a row. */
  readonly startFailures: number
  /** After a stop: whether Postgres wrote its shutdown checkpoint. */
  readonly cleanStop?: boolean
  /** What the place of its data was told; undefined: there is no such place, or nobody but `destroy` can take it away. */
  readonly deletionPolicy?: DeletionPolicy | 'untold'
}

/** Whether a sign-in with a credential works. `refused` is an answer; `unreachable` is none. */
export type SignIn = { readonly result: 'ok' | 'refused' | 'unreachable'; readonly message?: string }

/** What something cannot go on without, for people who may do something about it. */
export interface WaitsFor extends InstanceFailure {
  readonly condition: ConditionError['condition']
}

/** How far a destroy got, and what it kept. */
export interface Destroyed {
  readonly done: boolean
  /** Why it is not done, where that is more than a matter of moments. */
  readonly waitsFor?: WaitsFor
  readonly retainedAt?: string
  readonly retainedUntil?: string
}

/** All methods are idempotent, survive a crash at any point of themselves, and have deadlines of their own. */
export interface Host {
  observe(ref: InstanceRef): Promise<ObservedInstance>
  /**
   * Makes the instance exist and asks for it to run; returns once Postgres was launched, not when it answers.
   * Never initializes data that is there. A running one with other settings that need a restart is restarted; from this
   * call on `observe` never calls the old process running.
   * @throws ConditionError what blocks it
   */
  start(ref: InstanceRef, spec: InstanceSpec): Promise<void>
  /** Asks for a clean stop and that it stay stopped; returns at once. `observe` says when it is `stopped`. */
  stop(ref: InstanceRef): Promise<void>
  /**
   * Tells the place of its data what to do should others take it away, while we are there or not. What `destroy` says is
   * what counts for a deletion that goes through us. Harmless where there is no data, or nobody else could.
   */
  setDeletionPolicy(ref: InstanceRef, policy: DeletionPolicy): Promise<void>
  /**
   * Stops it if it runs, then removes the data or, by policy, keeps it where `retainedAt` says. `done` is false while
   * a process is still there. Harmless when nothing is left; then answers the same `retainedAt` again if data was kept.
   */
  destroy(ref: InstanceRef, policy: DeletionPolicy): Promise<Destroyed>
  /** Sets the two roles' password verifiers; the clear password is never sent to the server. Needs a running instance. */
  applyCredentials(ref: InstanceRef, credentials: CredentialSet): Promise<void>
  /** Signs in as `app` the way a client would, through the endpoint, and leaves again. */
  signIn(ref: InstanceRef, credentials: CredentialSet): Promise<SignIn>
  /** Calls back with the key of every instance whose state changed by itself; returns how to stop. */
  onChange(listener: (key: ResourceKey) => void): () => void
}

/** An error that knows the condition to set: what is wrong with an environment, not with our code. */
export class ConditionError extends Error {
  readonly condition: 'StorageReady' | 'CredentialsReady' | 'DatabaseReachable'
  readonly reason: string

  constructor(condition: ConditionError['condition'], reason: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ConditionError'
    this.condition = condition
    this.reason = reason
  }
}
