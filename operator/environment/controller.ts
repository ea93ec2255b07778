/**
 * What wakes the environment reconciler: a change of a resource's spec, labels or annotations, a word from the host,
 * and the time that a look itself asked for. Its own status writes do not wake it.
 */

import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { keyOf, keyText, type ResourceKey } from '../../lib/model/resource.ts'
import { Cache } from '../../runtime/controller/cache.ts'
import { type ControlLoops, startControlLoops } from '../../runtime/controller/control-loops.ts'
import { Controller } from '../../runtime/controller/controller.ts'
import { LiveView } from '../../runtime/controller/live-view.ts'
import { controlMetrics } from '../../runtime/controller/metrics.ts'
import { notingStore } from '../../runtime/controller/noting-store.ts'
import type { ControlMetrics } from '../../runtime/controller/observers.ts'
import { anyOf, generationChanged, labelsOrAnnotationsChanged } from '../../runtime/controller/predicates.ts'
import { Reflector } from '../../runtime/controller/reflector.ts'
import { sharedParts } from '../../runtime/controller/shared-parts.ts'
import { PRIORITY } from '../../runtime/controller/work-queue.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import type { OperatorContext } from '../context.ts'
import { driftMetrics } from './drift-metrics.ts'
import { phaseMetrics } from './phase-metrics.ts'
import { cachedReader, freshReader } from './reader.ts'
import { createReconciler } from './reconciler.ts'

export interface EnvironmentController {
  /** Resolves once every environment that was there at the start has been judged, so that no status claims too much. */
  readonly ready: Promise<void>
  /** Resolves once the caches are full, elected or not. */
  readonly synced: Promise<void>
  readonly health: ControlLoops['health']
  /** What is there, as it was seen last. */
  readonly cache: Pick<Cache<Environment>, 'list' | 'subscribe'>
  /** Takes no more keys and waits for what runs. */
  stop(): Promise<void>
}

export const startEnvironmentController = (context: OperatorContext): EnvironmentController => {
  const { config, host, log, registry, namespaces } = context
  const firstLook = firstLooks()
  const metrics = controlMetrics(registry)
  const { store, reader, cache, reflector } = source(context, metrics)
  const reconciler = createReconciler({
    ...context,
    store,
    reader,
    recordsNamespace: config.namespace,
    defaults: config.defaults,
    limits: config.limits,
    resyncMs: config.resyncMs,
    metrics: phaseMetrics(registry),
    onDrift: driftMetrics(registry).corrected,
    onJudged: firstLook.judged,
  })
  const controller = new Controller({
    name: 'environment',
    concurrency: config.concurrency,
    log,
    metrics,
    reconcile: async (key, given) => {
      try {
        return await reconciler.reconcile(key, given)
      } catch (error) {
        // Whoever cannot be judged for a reason of its own must not keep the others' API from being ready.
        if (!isStoreError(error, 'Unavailable', 'TooManyRequests', 'Conflict')) firstLook.judged(key)
        throw error
      }
    },
  })
  const touched = anyOf(generationChanged, labelsOrAnnotationsChanged)
  // Passwords are read by name and never watched: whoever touches an environment has them looked at, too.
  const unsubscribeTouched = cache.subscribe(event => {
    if (event.type === 'modified' && touched(event)) reconciler.suspect(keyOf(event.object))
  })
  controller.watch(cache, { predicate: touched })
  // Until everything was looked at once, the host has a word for each, and what somebody wants meanwhile goes before them.
  let isCold = true
  const unsubscribeHost = host.onChange(key => {
    reconciler.suspect(key)
    controller.enqueue(key, isCold ? PRIORITY.event : PRIORITY.news)
  })
  const unsubscribeNamespaces = namespaces?.onChange(namespace => {
    for (const environment of cache.list({ namespace })) controller.enqueue(keyOf(environment))
  })
  const loops = startControlLoops({
    reflectors: [reflector],
    caches: [cache],
    controllers: [controller],
    elected: context.elected,
  })
  const ready = loops.ready
    .then(() => firstLook.allOf(cache.list().map(keyOf)))
    .then(() => {
      isCold = false
    })
  // Whoever stops before it was ready may never have looked.
  ready.catch(() => undefined)
  return {
    ready,
    synced: loops.synced,
    health: loops.health,
    cache,
    stop: async () => {
      unsubscribeHost()
      unsubscribeTouched()
      unsubscribeNamespaces?.()
      firstLook.giveUp()
      const drained = await loops.stop()
      if (!drained) log.warn({}, 'The environment controller stopped before everything that ran had ended')
    },
  }
}

/** Where Environments come from: what feeds the controller, where the reconciler reads them, and through what it writes. */
const source = (context: OperatorContext, metrics: ControlMetrics) => {
  const { config, log } = context
  const cache = new Cache<Environment>({ log, transform: config.readsCache ? sharedParts() : withoutStatus })
  const reflector = new Reflector({
    store: context.store,
    type: environmentType,
    sink: cache,
    log,
    metrics,
    backoff: config.reconnect,
    idleTimeoutMs: config.watchIdleMs,
    name: 'operator/Environment',
  })
  if (!config.readsCache) return { store: context.store, reader: freshReader(context.store), cache, reflector }
  const view = new LiveView({
    cache,
    seenUpTo: () => reflector.seenUpTo,
    read: key => context.store.get(environmentType, key),
    observer: metrics.forLiveView(environmentType.kind),
  })
  cache.subscribe(({ object }) => view.cacheChanged(keyOf(object)))
  const store = notingStore(context.store, view, environmentType)
  return { store, reader: cachedReader(view), cache, reflector }
}

/** Where the reconciler reads afresh, the cache only has to know that resources are there and when their spec moves. */
const withoutStatus = ({ status: _, ...rest }: Environment): Environment => rest

/** Keeps account of which environments were judged since the start. */
const firstLooks = () => {
  const done = new Set<string>()
  let awaited: Set<string> | undefined
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  // It may be given up before anybody waits for it.
  promise.catch(() => undefined)
  return {
    judged: (key: ResourceKey): void => {
      if (awaited === undefined) done.add(keyText(key))
      else if (awaited.delete(keyText(key)) && awaited.size === 0) resolve(undefined)
    },
    allOf: async (keys: readonly ResourceKey[]): Promise<void> => {
      awaited = new Set(keys.map(keyText).filter(key => !done.has(key)))
      done.clear()
      if (awaited.size === 0) resolve(undefined)
      await promise
    },
    giveUp: (): void => reject(new Error('The operator was stopped before every environment had been looked at')),
  }
}
