/**
 * The operator's reconciler over ports in memory, on a clock that tests move. The store, the credentials and the host
 * outlive the reconciler: `restart` makes a new one that knows nothing, as after a crash.
 */
import assert from 'node:assert/strict'
import type { DeletionRecord } from '../crds/deletion-record.ts'
import { deletionRecordType } from '../crds/deletion-record-type.ts'
import type { Environment, EnvironmentSpec, EnvironmentStatus } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { isLegalMove, type Phase } from '../lib/model/environment.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import { operatorConfig } from '../operator/config/config.ts'
import type { Events } from '../operator/environment/events.ts'
import type { Namespaces } from '../operator/environment/namespaces.ts'
import { freshReader } from '../operator/environment/reader.ts'
import { createReconciler, type EnvironmentReconciler } from '../operator/environment/reconciler.ts'
import type { CredentialSet } from '../runtime/credentials/credentials.ts'
import { silentLog } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { isStoreError } from '../runtime/store/store-error.ts'
import {
  type CallCounter,
  callCounter,
  countingCredentials,
  countingHost,
  countingStore,
  Died,
} from './counting-ports.ts'
import { CREATED_MS, FIGURES } from './gen.ts'
import { type MemoryCredentials, memoryCredentials } from './memory-credentials.ts'
import { memoryStore } from './memory-store.ts'
import { modelHost } from './model-host.ts'

const CONFIG = operatorConfig({})

export interface PhaseMove {
  readonly from: Phase
  readonly to: Phase
}

export const operatorWorld = (
  options: {
    readonly namespaces?: Namespaces
    readonly events?: Events
    /** Runs right after passwords were kept. */
    readonly afterCredentials?: (uid: string, kept: CredentialSet) => void
    /** Runs right after a status was written, before the operator goes on. */
    readonly afterStatus?: (store: ResourceStore, environment: Environment) => Promise<void>
  } = {},
) => {
  let nowMs = CREATED_MS
  const now = (): number => nowMs
  const store = memoryStore(now)
  const kept = memoryCredentials()
  const credentials: MemoryCredentials = {
    ...kept,
    write: async (owner, set) => {
      await kept.write(owner, set)
      options.afterCredentials?.(owner.uid, set)
    },
  }
  const host = modelHost()
  const moves: PhaseMove[] = []
  let counter: CallCounter = callCounter()
  let reconciler: EnvironmentReconciler

  /** Sees every phase that is written, and refuses one that the model does not allow. */
  const watched: ResourceStore = {
    ...store,
    patchStatus: async (type, key, status, pre) => {
      const before = await store.get(type, key)
      const after = await store.patchStatus(type, key, status, pre)
      const [from, to] = [before, after].map(it => (it?.status as EnvironmentStatus | undefined)?.phase ?? 'requested')
      if (from !== to) moves.push({ from: from!, to: to! })
      assert.ok(isLegalMove(from!, to!), `illegal move ${from} -> ${to}`)
      await options.afterStatus?.(store, after as unknown as Environment)
      return after
    },
  }
  const storePorts = (counted: ResourceStore) => ({ store: counted, reader: freshReader(counted) })
  const restart = (dieAfter?: number): void => {
    counter = callCounter({ dieAfter })
    reconciler = createReconciler({
      ...storePorts(countingStore(watched, counter)),
      credentials: countingCredentials(credentials, counter),
      host: countingHost(host, counter),
      recordsNamespace: CONFIG.namespace,
      namespaces: options.namespaces,
      events: options.events,
      defaults: CONFIG.defaults,
      limits: CONFIG.limits,
      resyncMs: CONFIG.resyncMs,
      metrics: { stands: () => undefined, moved: () => undefined, forget: () => undefined },
      now,
      random: () => 0.5,
    })
  }
  restart()

  const get = (key: ResourceKey): Promise<Environment | undefined> => store.get(environmentType, key)

  const must = async (key: ResourceKey): Promise<Environment> => {
    const environment = await get(key)
    assert.ok(environment, `no environment ${key.name}`)
    return environment
  }

  const reconcile = async (key: ResourceKey): Promise<number | undefined> => {
    try {
      return (await reconciler.reconcile(key, { log: silentLog })).requeueAfterMs
    } catch (error) {
      if (error instanceof Died) throw error
      if (isStoreError(error, 'Conflict', 'Unavailable')) return 250
      throw error
    }
  }

  return {
    store,
    credentials,
    host,
    moves,
    now,
    restart,
    get,
    must,
    reconcile,
    /** The host says that something happened. */
    suspect: (key: ResourceKey): void => reconciler.suspect(key),
    /** The mutating calls of the reconciler that runs now. */
    calls: (): readonly string[] => counter.calls,
    pass: (ms: number): void => {
      nowMs += ms
    },
    create: async (spec: Partial<EnvironmentSpec> = {}): Promise<ResourceKey> => {
      const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }
      const full: EnvironmentSpec = { ...path, kind: 'staging', resources: FIGURES, ...spec }
      const key = { namespace: 'svc-acme-shop', name: environmentName(full) }
      await store.create(environmentType, { ...key, spec: full })
      return key
    },
    edit: async (key: ResourceKey, spec: { readonly [field: string]: unknown }): Promise<void> => {
      const { metadata } = await must(key)
      await store.patch(environmentType, key, { spec }, { uid: metadata.uid })
    },
    annotate: async (key: ResourceKey, annotations: Readonly<Record<string, string | null>>): Promise<void> => {
      const { metadata } = await must(key)
      await store.patch(environmentType, key, { metadata: { annotations } }, { uid: metadata.uid })
    },
    remove: async (key: ResourceKey): Promise<void> => {
      const environment = await get(key)
      if (environment !== undefined) await store.delete(environmentType, key, { uid: environment.metadata.uid })
    },
    records: async (): Promise<readonly DeletionRecord[]> =>
      (await store.list(deletionRecordType, { namespace: CONFIG.namespace })).items,
    /** Reconciles as the controller would, time and host moving on, until it rests. */
    settle: async (
      key: ResourceKey,
      { rounds = 400, restMs = CONFIG.resyncMs / 2 } = {},
    ): Promise<Environment | undefined> => {
      for (let round = 0; round < rounds; round++) {
        const before = store.writes()
        const requeueMs = await reconcile(key)
        if (store.writes() === before && (requeueMs === undefined || requeueMs >= restMs)) return await get(key)
        host.tick()
        nowMs += Math.min(requeueMs ?? 0, CONFIG.resyncMs)
      }
      return assert.fail(`${key.name} never rests: ${JSON.stringify((await get(key))?.status)}`)
    },
  }
}

export type OperatorWorld = ReturnType<typeof operatorWorld>
