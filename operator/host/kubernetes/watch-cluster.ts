/** Follows the objects of all instances, by the operator's label, and gives them a world. */
import { LABELS } from '../../../crds/metadata.ts'
import type { ResourceKey } from '../../../lib/model/resource.ts'
import { Cache } from '../../../runtime/controller/cache.ts'
import type { ControlMetrics, ReflectorHealth } from '../../../runtime/controller/observers.ts'
import { Reflector } from '../../../runtime/controller/reflector.ts'
import { sharedParts } from '../../../runtime/controller/shared-parts.ts'
import type { KubernetesApi } from '../../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject, KubernetesObjects, ObjectType } from '../../../runtime/kubernetes/kubernetes-object.ts'
import { LiveObjects } from '../../../runtime/kubernetes/live-objects.ts'
import { type Observed, objectSource } from '../../../runtime/kubernetes/object-source.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { AuthoritySecret } from './authority-secret.ts'
import type { ClusterWorld } from './cluster-world.ts'
import { type Correction, correctionText } from './correction.ts'
import type { KubernetesHostSettings } from './host-settings.ts'
import { keptPod, keptVolume } from './kept-objects.ts'
import { type Claim, claims, pods, services, statefulSets, type Volume, volumes } from './object-types.ts'
import { Places } from './places.ts'

export interface WatchOptions {
  readonly api: KubernetesApi
  readonly objects: KubernetesObjects
  readonly settings: KubernetesHostSettings
  readonly log: Log
  readonly metrics?: ControlMetrics | undefined
  /** Throws where this process does not lead; by default it always does. */
  readonly mustLead?: () => void
  readonly now?: () => Date
  /** How long a watch may be silent until it is opened anew. */
  readonly watchIdleMs?: number | undefined
  /** Told of everything of an instance that somebody changed and that was put right. */
  readonly onRepair?: (instance: { readonly key: ResourceKey; readonly uid: string }, correction: Correction) => void
}

export interface WatchedCluster {
  readonly world: ClusterWorld
  /** The claims of instances, those of environments that are gone too. */
  readonly claims: Pick<Cache<Observed<Claim>>, 'list' | 'subscribe'>
  /** Resolves once all that is there was seen. */
  start(): Promise<void>
  stop(): Promise<void>
  health(): readonly (ReflectorHealth & { readonly name: string })[]
}

/** `happened` is called for every change of an instance's object; with a namespace where the object itself is in none. */
export const watchCluster = (
  options: WatchOptions,
  happened: (object: Observed<KubernetesObject>, namespace?: string) => void,
): WatchedCluster => {
  const { api, objects, settings, log, metrics, now = () => new Date() } = options
  const stopping = new AbortController()
  const reflectors: { start(): void; stop(): Promise<void>; health(): ReflectorHealth; readonly name: string }[] = []
  const caches: { waitForSync(signal: AbortSignal): Promise<void> }[] = []
  const follow = <O extends KubernetesObject>(
    type: ObjectType<O>,
    cache: Cache<Observed<O>, string> = new Cache<Observed<O>>({ log }),
    {
      namespaceOf = () => undefined,
      trim = object => object,
    }: {
      readonly namespaceOf?: (object: Observed<O>) => string | undefined
      readonly trim?: (object: Observed<O>) => Observed<O>
    } = {},
  ): LiveObjects<O> => {
    const share = sharedParts()
    const reflector = new Reflector({
      ...objectSource(api, type, object => share(trim(object))),
      selector: { labels: { [LABELS.managedBy]: settings.managedBy } },
      sink: cache,
      log,
      metrics,
      idleTimeoutMs: options.watchIdleMs,
    })
    const observer = metrics?.forLiveView(type.kind)
    const live = new LiveObjects({ objects, type, cache, seenUpTo: () => reflector.seenUpTo, observer })
    cache.subscribe(({ object, old }) => {
      live.cacheChanged(object.metadata)
      happened(object, namespaceOf(object))
      // Its labels may have been what changed.
      if (old !== undefined) happened(old, namespaceOf(old))
    })
    reflectors.push(reflector)
    caches.push(cache)
    return live
  }
  const seenClaims = new Cache<Observed<Claim>>({ log })
  const seenVolumes = new Cache<Observed<Volume>, 'uid'>({
    log,
    indexes: { uid: ({ metadata }) => [metadata.labels[LABELS.uid] ?? ''] },
  })
  const world: ClusterWorld = {
    statefulSets: follow(statefulSets),
    pods: follow(pods, undefined, { trim: keptPod }),
    services: follow(services),
    claims: follow(claims, seenClaims),
    volumes: follow(volumes, seenVolumes, { namespaceOf: ({ spec }) => spec.claimRef?.namespace, trim: keptVolume }),
    volumesOf: uid => seenVolumes.byIndex('uid', uid),
    objects,
    settings,
    mustLead: options.mustLead ?? (() => undefined),
    knocks: new Places(12),
    looks: new Places(2),
    authority: new AuthoritySecret({
      ...{ objects, namespace: settings.operatorNamespace, log, now },
      isInUse: async () => {
        const { items } = await objects.list(statefulSets, { labels: { [LABELS.managedBy]: settings.managedBy } })
        return items.length > 0
      },
    }),
    log,
    now,
    repaired: ({ namespace, owner }, correction) => {
      log.info({ namespace, environment: owner.name }, correctionText(correction))
      options.onRepair?.({ key: { namespace, name: owner.name }, uid: owner.uid }, correction)
    },
  }
  let following: Promise<void> | undefined
  return {
    world,
    claims: seenClaims,
    start: async () => {
      for (const reflector of reflectors) reflector.start()
      following = world.authority.follow(stopping.signal)
      await Promise.all(caches.map(cache => cache.waitForSync(stopping.signal)))
    },
    stop: async () => {
      stopping.abort(new Error('The host stopped before it had seen the cluster'))
      await Promise.all([following, ...reflectors.map(reflector => reflector.stop())])
    },
    health: () => reflectors.map(reflector => ({ name: reflector.name, ...reflector.health() })),
  }
}
