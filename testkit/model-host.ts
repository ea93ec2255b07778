/**
 * A Host in memory that behaves like a real one: starts and stops take a moment (`tick`), processes die and come back,
 * data is made once and stays until it is destroyed. It outlives the operator that talks to it, as disks do.
 */
import type { Endpoint } from '../crds/environment.ts'
import type { DeletionPolicy } from '../lib/model/environment.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import {
  ConditionError,
  type Host,
  type InstanceRef,
  type InstanceSpec,
  type InstanceState,
} from '../operator/host/host.ts'
import type { CredentialSet } from '../runtime/credentials/credentials.ts'

export interface ModelInstance {
  readonly key: ResourceKey
  state: InstanceState
  initialized: boolean
  wanted: boolean
  spec: InstanceSpec | undefined
  password: string | undefined
  startFailures: number
  cleanStop: boolean | undefined
  endpoint: Endpoint
  deletionPolicy: DeletionPolicy | 'untold'
  /** Times a process was launched. */
  launches: number
  /** Times data was made from nothing. */
  inits: number
}

export type RefusableMethod = 'start' | 'stop' | 'destroy' | 'applyCredentials' | 'setDeletionPolicy'

export interface ModelHost extends Host {
  readonly instances: ReadonlyMap<string, ModelInstance>
  /** Where retained data lies, by uid. */
  readonly retained: ReadonlyMap<string, string>
  /** A moment passes: whatever was starting or stopping gets on. */
  tick(): void
  /** The process of an instance dies. */
  kill(uid: string): void
  /** The process of an instance is gone and the host does not start it by itself, as after a restart of the machine. */
  loseProcess(uid: string): void
  /** The process of an instance stays and answers nothing any more. */
  hang(uid: string): void
  /** The data of an instance disappears, its process with it. */
  loseData(uid: string): void
  /** Somebody changes the tenant's password in the database itself. */
  changePassword(uid: string): void
  /** Somebody takes away what the place of the data was told. */
  loseDeletionPolicy(uid: string): void
  /** The next so many launches of any instance die before they answer. */
  failLaunches(count: number): void
  /** The next so many calls of a method throw this. */
  refuse(method: RefusableMethod, count: number, error?: Error): void
}

const sameSettings = (a: InstanceSpec | undefined, b: InstanceSpec): boolean =>
  a?.memoryBytes === b.memoryBytes && a.cpu === b.cpu && a.maxConnections === b.maxConnections

export const modelHost = (): ModelHost => {
  const instances = new Map<string, ModelInstance>()
  const retained = new Map<string, string>()
  const listeners = new Set<(key: ResourceKey) => void>()
  const refusals = new Map<string, { count: number; error: Error }>()
  let failing = 0
  let ports = 20_000

  const changed = (instance: ModelInstance): void => {
    for (const listener of listeners) listener(instance.key)
  }
  const mayRefuse = (method: string): void => {
    const refusal = refusals.get(method)
    if (refusal === undefined || refusal.count === 0) return
    refusal.count -= 1
    throw refusal.error
  }
  const launch = (instance: ModelInstance): void => {
    instance.launches += 1
    instance.state = 'starting'
    instance.cleanStop = undefined
  }
  const of = (uid: string): ModelInstance => {
    const instance = instances.get(uid)
    if (instance === undefined) throw new Error(`No instance ${uid}`)
    return instance
  }

  const step = (instance: ModelInstance): void => {
    switch (instance.state) {
      case 'starting':
        if (failing > 0) {
          failing -= 1
          instance.startFailures += 1
          instance.state = 'failed'
        } else {
          instance.startFailures = 0
          instance.state = 'running'
        }
        break
      case 'stopping':
        instance.state = instance.wanted ? 'starting' : 'stopped'
        break
      case 'failed':
        if (!instance.initialized) return
        launch(instance)
        break
      case 'absent':
      case 'stopped':
      case 'running':
      case 'unresponsive':
        return
    }
    changed(instance)
  }

  return {
    instances,
    retained,
    tick: () => {
      for (const instance of instances.values()) step(instance)
    },
    kill: uid => {
      const instance = of(uid)
      if (instance.state !== 'running' && instance.state !== 'unresponsive') return
      instance.state = 'failed'
      changed(instance)
    },
    loseProcess: uid => {
      of(uid).state = 'stopped'
    },
    hang: uid => {
      const instance = of(uid)
      if (instance.state !== 'running') return
      instance.state = 'unresponsive'
      changed(instance)
    },
    loseData: uid => {
      const instance = of(uid)
      instance.initialized = false
      instance.state = 'absent'
      changed(instance)
    },
    changePassword: uid => {
      of(uid).password = 'changed by the tenant'
    },
    loseDeletionPolicy: uid => {
      const instance = of(uid)
      instance.deletionPolicy = 'untold'
      changed(instance)
    },
    failLaunches: count => {
      failing = count
    },
    refuse: (method, count, error = new ConditionError('StorageReady', 'DiskFull', 'Cannot write: the disk is full')) =>
      refusals.set(method, { count, error }),

    observe: async ({ uid }) => {
      const instance = instances.get(uid)
      if (instance === undefined) return { state: 'absent', initialized: false, startFailures: 0 }
      const { state, initialized, endpoint, startFailures, cleanStop, deletionPolicy } = instance
      return {
        state,
        initialized,
        endpoint,
        image: 'postgres:17.10',
        lineage: 'template:model',
        startFailures,
        ...(initialized ? { deletionPolicy } : {}),
        ...(state === 'failed' ? { failure: { reason: 'Crashed', message: 'Postgres ended by itself' } } : {}),
        ...(cleanStop === undefined ? {} : { cleanStop }),
      }
    },
    start: async ({ uid, key }: InstanceRef, spec) => {
      mayRefuse('start')
      const instance = instances.get(uid) ?? {
        ...{ key, state: 'absent', initialized: false, wanted: true, spec: undefined, password: undefined },
        ...{ startFailures: 0, cleanStop: undefined, launches: 0, inits: 0 },
        endpoint: { host: '127.0.0.1', port: ++ports, sslmode: 'disable' },
        deletionPolicy: 'untold',
      }
      instances.set(uid, instance)
      if (!instance.initialized) {
        instance.initialized = true
        instance.inits += 1
      }
      instance.wanted = true
      instance.deletionPolicy = spec.deletionPolicy ?? 'Delete'
      const restart = instance.state === 'running' && !sameSettings(instance.spec, spec)
      instance.spec = spec
      if (restart || instance.state === 'absent' || instance.state === 'stopped' || instance.state === 'failed')
        launch(instance)
    },
    stop: async ({ uid }) => {
      mayRefuse('stop')
      const instance = instances.get(uid)
      if (instance === undefined) return
      instance.wanted = false
      if (instance.state === 'failed') {
        instance.state = 'stopped'
        instance.cleanStop = false
      } else if (instance.state !== 'stopped' && instance.state !== 'absent') {
        instance.cleanStop = instance.state === 'running'
        instance.state = 'stopping'
      }
    },
    setDeletionPolicy: async ({ uid }, policy) => {
      mayRefuse('setDeletionPolicy')
      const instance = instances.get(uid)
      if (instance !== undefined) instance.deletionPolicy = policy
    },
    destroy: async ({ uid }, policy: DeletionPolicy) => {
      mayRefuse('destroy')
      const instance = instances.get(uid)
      const kept = retained.get(uid)
      if (instance === undefined) return { done: true, ...(kept === undefined ? {} : { retainedAt: kept }) }
      if (instance.state === 'failed') instance.state = 'stopped'
      if (instance.state !== 'stopped' && instance.state !== 'absent') {
        instance.wanted = false
        instance.state = 'stopping'
        return { done: false }
      }
      instances.delete(uid)
      if (policy === 'Delete' || !instance.initialized) return { done: true }
      retained.set(uid, `/trash/${uid}`)
      return { done: true, retainedAt: `/trash/${uid}` }
    },
    applyCredentials: async ({ uid }, credentials: CredentialSet) => {
      mayRefuse('applyCredentials')
      const instance = instances.get(uid)
      if (instance?.state !== 'running')
        throw new ConditionError('DatabaseReachable', 'NotRunning', 'Cannot set passwords: Postgres does not run')
      instance.password = credentials.app.password
    },
    signIn: async ({ uid }, credentials) => {
      const instance = instances.get(uid)
      if (instance?.state !== 'running') return { result: 'unreachable' }
      return { result: instance.password === credentials.app.password ? 'ok' : 'refused' }
    },
    onChange: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
