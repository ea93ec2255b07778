/** The floor: a script that writes the same objects as an operator did, each once, as it was left, and nothing else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { LABELS } from '../../crds/metadata.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { eachOf } from '../../testkit/each-of.ts'
import type { TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { watchObjects } from '../../testkit/kubernetes/watch-objects.ts'
import { childrenName, type Environments, resourceOf } from './environments.ts'

const kind = (apiVersion: string, name: string, plural: string): ObjectType => ({ apiVersion, kind: name, plural })
const POD = kind('v1', 'Pod', 'pods')
/** In the order in which they are needed. */
const OF_PROJECTS = [
  kind('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'),
  kind('v1', 'ServiceAccount', 'serviceaccounts'),
  kind('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
]
const OF_ENVIRONMENTS = [
  kind('v1', 'Secret', 'secrets'),
  kind('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  kind('v1', 'Service', 'services'),
  kind('apps/v1', 'StatefulSet', 'statefulsets'),
]

/** `create`: as cheaply as it can be done. `apply`: server-side, as the operator has to write its children. */
export type Writing = 'create' | 'apply'

interface Found {
  readonly type: ObjectType
  readonly object: KubernetesObject
}

const FILLED = new Set(['clusterIP', 'clusterIPs', 'volumeName'])
const withoutFilled = (spec: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(spec).filter(([name]) => !FILLED.has(name)))

/** What the API server and its controllers filled in is left out, and so is its owner. */
const copied = ({ type, object }: Found, names: ReadonlyMap<string, string>, namespace: string): KubernetesObject => {
  const {
    metadata,
    status: _,
    ...rest
  } = structuredClone(object) as KubernetesObject & {
    status?: unknown
    spec?: Record<string, unknown>
  }
  const { name = '', labels, annotations } = metadata ?? {}
  const said = Object.entries(annotations ?? {}).filter(([key]) => !key.includes('kubernetes.io/'))
  const text = JSON.stringify({
    ...rest,
    ...(rest.spec === undefined ? {} : { spec: withoutFilled(rest.spec) }),
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { name, labels, annotations: Object.fromEntries(said) },
  })
  const renamed = [...names].reduce((written, [from, to]) => written.replaceAll(from, to), text)
  const copy = JSON.parse(renamed) as KubernetesObject
  return { ...copy, metadata: { ...copy.metadata, namespace } }
}

/**
 * Writes for each key what the operator left for `model`: the namespace's objects once, then the resource, its children and its status,
 * and waits for the pods. No operator may run.
 * @returns how long that took, and how many objects each environment is
 */
export const bareWrites = async (
  cluster: TestCluster,
  { store }: Environments,
  model: ResourceKey,
  keys: readonly ResourceKey[],
  writing: Writing,
): Promise<{ readonly ms: number; readonly objects: number }> => {
  const environment = (await store.get(environmentType, model))!
  const found = async (types: readonly ObjectType[], labels: Readonly<Record<string, string>>): Promise<Found[]> => {
    const lists = await Promise.all(
      types.map(async type => {
        const { items } = await cluster.objects.list(type, { namespace: model.namespace, labels })
        return items.map(object => ({ type, object }))
      }),
    )
    return lists.flat()
  }
  const ofProjects = (await found(OF_PROJECTS, { [LABELS.managedBy]: 'svc-operator' })).filter(
    ({ object }) => object.metadata?.labels?.[LABELS.uid] === undefined,
  )
  const ofEnvironments = await found(OF_ENVIRONMENTS, { [LABELS.uid]: environment.metadata.uid })
  const write = async (each: Found, names: ReadonlyMap<string, string>, namespace: string): Promise<void> => {
    await cluster.objects[writing](each.type, copied(each, names, namespace))
  }
  const namespaces = new Set(keys.map(({ namespace }) => namespace))
  const ready = new Set<string>()
  const ended = new AbortController()
  void watchObjects(cluster.api, POD, ended.signal, (uid, object) => {
    const { status, metadata } = (object ?? {}) as {
      status?: { conditions?: { type: string; status: string }[] }
    } & KubernetesObject
    const isReady = status?.conditions?.some(condition => condition.type === 'Ready' && condition.status === 'True')
    if (namespaces.has(metadata?.namespace ?? '') && isReady === true) ready.add(uid)
  })
  const start = performance.now()
  await eachOf([...namespaces], async namespace => {
    for (const each of ofProjects) await write(each, new Map(), namespace)
  })
  await eachOf(keys, async key => {
    const { metadata } = await store.create(environmentType, resourceOf(key))
    const { uid, resourceVersion } = metadata
    const names = new Map([
      [environment.metadata.uid, uid],
      [environment.metadata.uid.slice(0, 8), uid.slice(0, 8)],
      [childrenName(model), childrenName(key)],
    ])
    for (const each of ofEnvironments) await write(each, names, key.namespace)
    await store.patchStatus(environmentType, key, environment.status as never, { uid, resourceVersion })
  })
  const until = Date.now() + 60_000 + keys.length * 1_000
  while (ready.size < keys.length) {
    if (Date.now() > until) throw new Error(`${ready.size} of ${keys.length} pods of the bare script are Ready`)
    await sleep(20)
  }
  const ms = performance.now() - start
  ended.abort()
  return { ms, objects: ofEnvironments.length + 1 }
}
