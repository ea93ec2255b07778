/**
 * Dispatch and projection as one service of the API server. Every replica runs it; the one that holds the lease works, the
 * others keep their caches full and stand by.
 */
import { Registry } from 'prom-client'
import type { DeletionRecord } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { BackoffPolicy } from '../../runtime/controller/backoff.ts'
import { Cache } from '../../runtime/controller/cache.ts'
import { controlMetrics } from '../../runtime/controller/metrics.ts'
import { Reflector } from '../../runtime/controller/reflector.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { projectionMetrics } from '../projector/metrics.ts'
import type { ControlPlaneSql } from '../store/fenced-transactions.ts'
import { LeaseKeeper } from '../store/lease-keeper.ts'
import { LeaseTerm } from './lease-term.ts'
import type { ProjectNamespaces } from './project-namespaces.ts'

export interface DispatchConfig {
  /** The serving role's URL, for the lease's own session. */
  readonly databaseUrl: string
  /** Where the operator leaves DeletionRecords. */
  readonly operatorNamespace: string
  /** The name that the store knows this client by. */
  readonly clientName: string
  /** Environments that are dispatched at once. */
  readonly dispatchConcurrency?: number
  /** Environments that are projected at once. */
  readonly projectConcurrency?: number
  /** How often intents are looked for, should a wake-up be lost. */
  readonly pollEveryMs?: number
  /** How often deadlines are looked at. */
  readonly sweepEveryMs?: number
  /** When an Environment that belongs to no project is looked at again. */
  readonly lookAgainAfterMs?: number
  /** How long the lease of a holder holds whose session hangs; that of a dead one is free at once. */
  readonly leaseTtlMs?: number
  readonly leaseRenewEveryMs?: number
  readonly leasePollEveryMs?: number
  /** Waits between attempts to reach the store again; by default those for a store that thousands share. */
  readonly reconnect?: BackoffPolicy | undefined
}

export interface DispatchDependencies {
  readonly database: ControlPlaneSql
  readonly store: ResourceStore
  /** Left out where namespaces are mere names. */
  readonly namespaces?: ProjectNamespaces | undefined
  readonly log: Log
  readonly registry?: Registry
  readonly config: DispatchConfig
}

export interface DispatchAndProjection {
  /** Resolves once everything that stands in the store was folded, by this replica or by another that holds the lease. */
  ready(): Promise<void>
  /** Whether this replica holds the lease and works. */
  readonly active: boolean
  /** After the commit of an intent: of one environment's row, or of any. Never throws. */
  wake(environmentRow?: string): void
  /** Ends the work, releases the lease: another replica goes on within a second. */
  stop(): Promise<void>
}

const INTENT_CHANNEL = 'svc_intents'

/** Starts it; returns at once. */
export const startDispatchAndProjection = (dependencies: DispatchDependencies): DispatchAndProjection => {
  const { database, store, namespaces, config } = dependencies
  const log = dependencies.log.child({ part: 'dispatch' })
  const { registry = new Registry() } = dependencies
  const metrics = projectionMetrics(registry)
  const loops = controlMetrics(registry)
  const ready = Promise.withResolvers<undefined>()
  const environments = new Cache<Environment>({ log })
  const deletionRecords = new Cache<DeletionRecord>({ log })
  const reflecting = { store, log, metrics: loops, backoff: config.reconnect }
  const reflectors = [
    new Reflector({ ...reflecting, type: environmentType, sink: environments, name: 'apiserver/Environment' }),
    new Reflector({
      ...reflecting,
      type: deletionRecordType,
      sink: deletionRecords,
      name: 'apiserver/DeletionRecord',
      selector: { namespace: config.operatorNamespace },
    }),
  ]
  let term: LeaseTerm | undefined
  let notifying = false
  let notifyAgain = false
  /** One notification speaks for all wake-ups before it; those that come while it is sent need another. */
  const notifyOthers = (): void => {
    notifyAgain = notifying
    if (notifying) return
    notifying = true
    void keeper.notify(INTENT_CHANNEL).then(() => {
      notifying = false
      if (notifyAgain) notifyOthers()
    })
  }

  const keeper = new LeaseKeeper({
    name: 'dispatch',
    connectionString: config.databaseUrl,
    log,
    channels: [INTENT_CHANNEL],
    ...(config.leaseTtlMs !== undefined && { ttlMs: config.leaseTtlMs }),
    ...(config.leaseRenewEveryMs !== undefined && { renewEveryMs: config.leaseRenewEveryMs }),
    ...(config.leasePollEveryMs !== undefined && { standbyPollMs: config.leasePollEveryMs }),
    candidate: {
      elected: lease => {
        metrics.holdsLease(true)
        const shared = {
          database,
          store,
          namespaces,
          log,
          metrics,
          controlMetrics: loops,
          environments,
          deletionRecords,
        }
        term = new LeaseTerm(lease, { ...config, ...shared }, () => ready.resolve(undefined))
      },
      ended: async () => {
        metrics.holdsLease(false)
        await term?.stop()
        term = undefined
      },
      standingBy: () => ready.resolve(undefined),
      notified: () => term?.wake(),
    },
  })
  for (const reflector of reflectors) reflector.start()
  keeper.start()

  return {
    ready: () => ready.promise,
    get active() {
      return term !== undefined
    },
    wake: environmentRow => {
      if (term === undefined) notifyOthers()
      else term.wake(environmentRow)
    },
    stop: async () => {
      await keeper.stop()
      await Promise.all(reflectors.map(reflector => reflector.stop()))
    },
  }
}
