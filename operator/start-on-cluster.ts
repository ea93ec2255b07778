/**
 * The operator on a Kubernetes cluster, composed: one of several replicas. Each keeps its caches full; the one that holds
 * the Lease works, and every change that it makes is refused from the moment that its term may have ended.
 */
import type { Registry } from 'prom-client'
import { AUTHORITIES_KEY, credentialSecrets } from '../crds/credential-secrets.ts'
import { controlMetrics } from '../runtime/controller/metrics.ts'
import type { ReflectorHealth } from '../runtime/controller/observers.ts'
import { EventRecorder } from '../runtime/kubernetes/event-recorder.ts'
import { KubernetesCredentials } from '../runtime/kubernetes/kubernetes-credentials.ts'
import { kubernetesObjects } from '../runtime/kubernetes/kubernetes-objects.ts'
import { KubernetesResourceStore } from '../runtime/kubernetes/kubernetes-resource-store.ts'
import { startLeaseElector } from '../runtime/kubernetes/lease-elector.ts'
import { openKubernetesApi } from '../runtime/kubernetes/open-kubernetes-api.ts'
import type { Log } from '../runtime/log/log.ts'
import type { OperatorConfig } from './config/config.ts'
import type { EnvironmentsSettings } from './config/environments-settings.ts'
import { driftMetrics } from './environment/drift-metrics.ts'
import { instanceRef } from './environment/observe.ts'
import { driftStory } from './environment/story.ts'
import { correctionText } from './host/kubernetes/correction.ts'
import { openKubernetesHost } from './host/kubernetes/kubernetes-host.ts'
import { clusterNamespaces } from './kubernetes/cluster-namespaces.ts'
import { environmentEvents } from './kubernetes/environment-events.ts'
import { fencedHost } from './kubernetes/fenced-host.ts'
import { hostSettingsOf } from './kubernetes/host-settings-of.ts'
import { namespaceProtection } from './kubernetes/namespace-protection.ts'
import { projectCredentials } from './kubernetes/project-credentials.ts'
import { projectKeeper } from './kubernetes/project-keeper.ts'
import { volumeMetrics } from './kubernetes/volume-metrics.ts'
import { startOperator } from './start.ts'

const NAME = 'svc-operator'
const VERSION = '0.1.0'
/** A reflector that has seen nothing for so long is not coming back by itself. */
const DEAF_MS = 300_000
/** Of a project whose namespace was changed: all of them have the same to tell. */
const MOST_TOLD = 10

export interface ClusterOperatorOptions {
  readonly config: OperatorConfig
  readonly environments: EnvironmentsSettings
  /** Unique to this process among those that contend for the lease. */
  readonly identity: string
  readonly log: Log
  readonly registry: Registry
  /** By default the cluster of the pod, else the one of kubectl. */
  readonly kubeconfig?: string
}

export interface ClusterOperator {
  /** Resolves with the reason when this process has lost the lease: it must end at once. */
  readonly lost: Promise<string>
  /** Why a probe should fail; undefined: all is well. */
  readonly alive: () => string | undefined
  readonly ready: () => string | undefined
  /** Takes no more work, waits for what runs, then gives the lease back. Databases are left as they are. */
  stop(): Promise<void>
}

/** @throws Error where no cluster is configured */
export const startOnCluster = async (options: ClusterOperatorOptions): Promise<ClusterOperator> => {
  const { config, identity, log, registry, kubeconfig } = options
  const metrics = controlMetrics(registry)
  const mayWrite = (): boolean => elector.isLeading()
  const { api, access, time } = await openKubernetesApi({
    name: NAME,
    version: VERSION,
    kubeconfig,
    registry,
    mayWrite,
  })
  const elector = await startLeaseElector({
    ...{ access, namespace: config.namespace, name: NAME, identity, userAgent: `${NAME}/${VERSION}`, log, registry },
  })
  const objects = kubernetesObjects(api, NAME)
  const settings = hostSettingsOf(config.namespace, options.environments)
  const namespaces = clusterNamespaces({ api, objects, log, metrics, watchIdleMs: config.watchIdleMs })
  const recorder = new EventRecorder({ api, controller: 'svc.internal/operator', instance: identity, log, registry })
  const events = environmentEvents(recorder)
  const drift = driftMetrics(registry)
  const host = openKubernetesHost({
    mustLead: () => elector.mustLead(),
    ...{ api, objects, settings, log, metrics, watchIdleMs: config.watchIdleMs },
    onRepair: (instance, correction) => {
      drift.corrected(correction.kind)
      events.tell(instance, driftStory(correctionText(correction)))
    },
  })
  volumeMetrics(registry, host)
  const credentials = new KubernetesCredentials(objects, credentialSecrets, async () => ({
    [AUTHORITIES_KEY]: await host.caCertificate(),
  }))
  const seen = Promise.all([host.watch(), namespaces.start()])
  const elected = Promise.all([elector.elected, seen])
  const operator = startOperator(config, {
    store: new KubernetesResourceStore(api, NAME),
    time,
    credentials: projectCredentials(credentials, (namespace, how) => host.prepare(namespace, how)),
    host: fencedHost(host, () => elector.mustLead()),
    events,
    namespaces,
    elected,
    log,
    registry,
  })
  const protection = namespaceProtection({
    ...{ environments: operator.environments, claims: host.claims, namespaces, objects, log, metrics },
  })
  const projects = projectKeeper({
    ...{ environments: operator.environments, namespaces, projects: host.projects, log, metrics },
    onRepair: (environments, correction) => {
      drift.corrected(correction.kind)
      for (const environment of environments.slice(0, MOST_TOLD))
        events.tell(instanceRef(environment), driftStory(correctionText(correction)))
    },
  })
  const state = { standsBy: false, works: false, stopping: false }
  void elected.then(() => host.keep(), ignored)
  void Promise.all([elected, operator.synced]).then(() => {
    protection.start()
    projects.start()
  }, ignored)
  void Promise.all([elector.decided, seen, operator.synced]).then(() => (state.standsBy = true), ignored)
  void operator.ready().then(() => (state.works = true), ignored)

  const health = (): readonly (ReflectorHealth & { readonly name: string })[] => [
    ...operator.health(),
    ...host.health(),
    { name: namespaces.name, ...namespaces.health() },
  ]
  return {
    lost: elector.lost,
    alive: () => {
      const deaf = health().filter(({ failingMs }) => failingMs > DEAF_MS)
      return deaf.length === 0 ? undefined : `not watching: ${deaf.map(({ name }) => name).join(', ')}`
    },
    ready: () => {
      if (state.stopping) return 'stopping'
      const problem = host.problem()
      if (problem !== undefined) return problem
      if (elector.isLeading()) return state.works ? undefined : 'leads, and has not looked at every environment yet'
      return state.standsBy ? undefined : 'has not seen the cluster yet'
    },
    stop: async () => {
      state.stopping = true
      await Promise.all([operator.stop(), host.stopAll(), namespaces.stop(), protection.stop(), projects.stop()])
      await recorder.stop()
      await elector.stop()
      await api.close()
    },
  }
}

/** Whoever stops before that has no use for it. */
const ignored = (): undefined => undefined
