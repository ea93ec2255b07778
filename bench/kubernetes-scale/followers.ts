/** Two ways to know what is there of Environments: our reflector, and the informer that comes with the official client. */
import type { KubernetesObject as ClientObject } from '@kubernetes/client-node'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { Cache } from '../../runtime/controller/cache.ts'
import { Reflector } from '../../runtime/controller/reflector.ts'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import { openKubernetesApi } from '../../runtime/kubernetes/open-kubernetes-api.ts'
import { silentLog } from '../../runtime/log/log.ts'

/** Keeps a copy of the Environments of a namespace. */
export interface Follower {
  readonly title: string
  /** Whether its copy has one of that name, and how many it has. */
  has(name: string): boolean
  readonly size: number
  stop(): Promise<void>
}

export type Follow = (kubeconfig: string, namespace: string) => Promise<Follower>

export const byReflector: Follow = async (kubeconfig, namespace) => {
  const { api } = await openKubernetesApi({ name: 'bench-reflector', version: '1', kubeconfig })
  const cache = new Cache<Environment>({ log: silentLog })
  const reflector = new Reflector({
    ...{ store: new KubernetesResourceStore(api, 'bench'), type: environmentType, selector: { namespace } },
    ...{ sink: cache, log: silentLog },
  })
  reflector.start()
  await cache.waitForSync(AbortSignal.timeout(30_000))
  return {
    title: 'our reflector',
    has: name => cache.get({ namespace, name }) !== undefined,
    get size() {
      return cache.list().length
    },
    stop: async () => {
      await reflector.stop()
      await api.close()
    },
  }
}

/** As its documentation shows it: started again five seconds after any error, which otherwise ends it for good. */
const AGAIN_MS = 5_000

export const byInformer: Follow = async (kubeconfig, namespace) => {
  const { CustomObjectsApi, KubeConfig, makeInformer } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const objects = config.makeApiClient(CustomObjectsApi)
  const [group = '', version = ''] = environmentType.apiVersion.split('/')
  const { plural } = environmentType
  const list = () =>
    objects.listNamespacedCustomObject({ group, version, namespace, plural }) as Promise<{ items: ClientObject[] }>
  const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}`
  const informer = makeInformer<ClientObject>(config, path, list)
  const ending = { isOver: false }
  const start = (): void =>
    void informer.start().catch(() => {
      if (!ending.isOver) setTimeout(start, AGAIN_MS)
    })
  informer.on('error', () => {
    if (!ending.isOver) setTimeout(start, AGAIN_MS)
  })
  start()
  return {
    title: 'the client’s informer',
    has: name => informer.get(name, namespace) !== undefined,
    get size() {
      return informer.list(namespace).length
    },
    stop: async () => {
      ending.isOver = true
      await informer.stop()
    },
  }
}
