/**
 * Keeps a label on namespaces of projects that hold protected environments or retained data: an admission policy refuses to
 * delete those. Without it `kubectl delete namespace` takes the claims first, and only then meets what was protected.
 */
import type { Environment } from '../../crds/environment.ts'
import { LABELS } from '../../crds/metadata.ts'
import type { Cache } from '../../runtime/controller/cache.ts'
import { Controller } from '../../runtime/controller/controller.ts'
import type { ControlMetrics } from '../../runtime/controller/observers.ts'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { Observed } from '../../runtime/kubernetes/object-source.ts'
import type { Log } from '../../runtime/log/log.ts'
import { isOfProject, type Namespaces } from '../environment/namespaces.ts'
import { type Claim, namespaces as namespaceType } from '../host/kubernetes/object-types.ts'
import { isRetained } from '../host/kubernetes/observation.ts'

export interface NamespaceProtectionOptions {
  readonly environments: Pick<Cache<Environment>, 'list' | 'subscribe'>
  /** Of instances; those of environments that are gone too. */
  readonly claims: Pick<Cache<Observed<Claim>>, 'list' | 'subscribe'>
  readonly namespaces: Namespaces
  readonly objects: KubernetesObjects
  readonly log: Log
  readonly metrics?: ControlMetrics | undefined
}

export interface NamespaceProtection {
  /** Only the operator that leads writes. */
  start(): void
  stop(): Promise<void>
}

export const namespaceProtection = (options: NamespaceProtectionOptions): NamespaceProtection => {
  const { environments, claims, namespaces, objects, log, metrics } = options
  const holdsData = (namespace: string): boolean =>
    environments.list({ namespace }).some(isProtected) || claims.list({ namespace }).some(isRetained)
  const controller = new Controller({
    name: 'namespace-protection',
    log,
    metrics,
    reconcile: async ({ name }, given) => {
      const facts = await namespaces.look(name)
      if (facts === undefined || facts.terminating || !isOfProject(facts)) return
      const wanted = holdsData(name)
      if (wanted === LABELS.protected in facts.labels) return
      const labels = { [LABELS.protected]: wanted ? 'true' : null }
      await objects.merge(namespaceType, { namespace: '', name }, { metadata: { labels } })
      given.log.info(
        { protected: wanted },
        wanted ? 'Protected a namespace' : 'Took the protection of a namespace back',
      )
    },
  })
  const look = (name: string): void => controller.enqueue({ namespace: '', name })
  const endings = [
    environments.subscribe(({ object, old }) => {
      if (isProtected(object) || (old !== undefined && isProtected(old))) look(object.metadata.namespace)
    }),
    claims.subscribe(({ object, old }) => {
      if (isRetained(object) || (old !== undefined && isRetained(old))) look(object.metadata.namespace)
    }),
    namespaces.onChange(look),
  ]
  return {
    start: () => controller.start(),
    stop: async () => {
      for (const end of endings) end()
      await controller.stop()
    },
  }
}

const isProtected = ({ spec }: Environment): boolean => spec.deletionProtection === true
