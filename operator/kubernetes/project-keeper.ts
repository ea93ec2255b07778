/**
 * Puts back what a project's namespace needs as soon as somebody changes it: until then its databases would be open to
 * everybody, or their pods not made. Asks the API server only where what is watched is not as it should be.
 */
import type { Environment } from '../../crds/environment.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import type { Cache } from '../../runtime/controller/cache.ts'
import { Controller } from '../../runtime/controller/controller.ts'
import type { ControlMetrics } from '../../runtime/controller/observers.ts'
import type { Log } from '../../runtime/log/log.ts'
import { isOfProject, type Namespaces } from '../environment/namespaces.ts'
import { type Correction, correctionText } from '../host/kubernetes/correction.ts'
import type { KubernetesHost } from '../host/kubernetes/kubernetes-host.ts'

export interface ProjectKeeperOptions {
  readonly environments: Pick<Cache<Environment>, 'list'>
  readonly namespaces: Namespaces
  readonly projects: KubernetesHost['projects']
  /** Told of what was put right in a namespace, for environments of it. */
  readonly onRepair: (environments: readonly Environment[], correction: Correction) => void
  readonly log: Log
  readonly metrics?: ControlMetrics | undefined
}

export interface ProjectKeeper {
  /** Looks at every project that has environments, and from then on at those that change. Only the operator that leads writes. */
  start(): void
  stop(): Promise<void>
}

/** Somebody may put it as it was again and again: that is not a race to win. */
const REST_MS = 5_000

export const projectKeeper = (options: ProjectKeeperOptions): ProjectKeeper => {
  const { environments, namespaces, projects, onRepair, log, metrics } = options
  const restsUntil = new Map<string, number>()
  const controller = new Controller({
    name: 'project',
    log,
    metrics,
    reconcile: async ({ name }, given) => {
      if (projects.isSound(name)) return {}
      const served = environments.list({ namespace: name }).filter(isServed)
      const facts = served.length === 0 ? undefined : await namespaces.look(name, { fresh: true })
      if (facts === undefined || facts.terminating || !isOfProject(facts)) return {}
      const restMs = (restsUntil.get(name) ?? 0) - performance.now()
      if (restMs > 0) return { requeueAfterMs: restMs }
      for (const correction of await projects.repair(name)) {
        given.log.info({ object: correction.name }, correctionText(correction))
        onRepair(served, correction)
      }
      restsUntil.set(name, performance.now() + REST_MS)
      return {}
    },
  })
  const look = (name: string): void => {
    controller.enqueue({ namespace: '', name })
  }
  projects.onChange(look)
  return {
    start: () => {
      for (const name of new Set(environments.list().map(({ metadata }) => metadata.namespace))) look(name)
      controller.start()
    },
    stop: async () => {
      await controller.stop()
    },
  }
}

/** What nobody has adopted yet, or is being deleted, needs nothing. */
const isServed = ({ metadata }: Environment): boolean =>
  metadata.finalizers.includes(ENVIRONMENT_FINALIZER) && metadata.deletionTimestamp === undefined
