/** What is in a namespace, of every kind that the API server serves; and the same with all that differs from run to run taken out. */
import { ANNOTATIONS } from '../../crds/metadata.ts'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject } from '../../runtime/kubernetes/kubernetes-object.ts'

interface ResourceList {
  readonly resources: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
    readonly verbs: readonly string[]
  }[]
}
interface GroupList {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[]
}

/** The cluster's own, or a second view of something else. */
const NOT_OURS = /^(events|endpoints|endpointslices|pods\.metrics|controllerrevisions)$/
/** What every namespace is given by the cluster. */
const GIVEN = new Set(['ConfigMap kube-root-ca.crt', 'ServiceAccount default'])

/** Every object of a namespace by `Kind name`, but kinds that are left out and what the cluster itself puts into each. */
export const everythingIn = async (
  api: KubernetesApi,
  namespace: string,
  leftOut = NOT_OURS,
): Promise<ReadonlyMap<string, KubernetesObject>> => {
  const { groups } = await api.call<GroupList>({ method: 'GET', path: '/apis' })
  const roots = ['/api/v1', ...groups.map(group => `/apis/${group.preferredVersion.groupVersion}`)]
  const found = await Promise.all(
    roots.map(async root => {
      const { resources } = await api.call<ResourceList>({ method: 'GET', path: root })
      const listed = resources.filter(
        ({ name, namespaced, verbs }) => namespaced && verbs.includes('list') && !leftOut.test(name),
      )
      return Promise.all(
        listed.map(async ({ name, kind }) => {
          const path = `${root}/namespaces/${namespace}/${name}`
          const { items } = await api.call<{ items: KubernetesObject[] }>({ method: 'GET', path })
          return items.map((item): [string, KubernetesObject] => [`${kind} ${item.metadata?.name ?? ''}`, item])
        }),
      )
    }),
  )
  return new Map(
    found
      .flat(2)
      .filter(([name]) => !GIVEN.has(name))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** Fields that say when and how often, and what the cluster picked. */
const PASSING = new Set([
  'uid',
  'resourceVersion',
  'generation',
  'observedGeneration',
  'creationTimestamp',
  'deletionTimestamp',
  'managedFields',
  'clusterIP',
  'clusterIPs',
  'nodePort',
  'volumeName',
  'phaseTransitionTime',
  'lastTransitionTime',
  'lastProbeTime',
  'lastHeartbeatTime',
  'expiresAt',
  'startTime',
  'startedAt',
  'finishedAt',
  'containerID',
  'podIP',
  'podIPs',
  'hostIP',
  'hostIPs',
  'attempts',
  'currentRevision',
  'updateRevision',
  'controller-revision-hash',
  ANNOTATIONS.retainedUntil,
])

/** Where nodes are played, the scheduler finds no place for a pod that has one: who says so last is a matter of moments. */
const isSchedulers = (item: unknown): boolean =>
  typeof item === 'object' && item !== null && 'type' in item && item.type === 'PodScheduled'

/**
 * Objects as they would be in every run: passing fields out, words of this run replaced, contents of Secrets reduced to
 * their names.
 * @param words what stands in names and values only here, such as an id or a uid, and what to call it; earlier ones may hold later ones
 */
export const normalized = (
  objects: ReadonlyMap<string, KubernetesObject>,
  words: readonly (readonly [word: string, name: string])[],
): Readonly<Record<string, KubernetesObject>> => {
  const named = (text: string): string => {
    let result = text
    for (const [word, name] of words) result = result.replaceAll(word, name)
    return result
  }
  const plain = (value: unknown): unknown => {
    if (typeof value === 'string') return named(value)
    if (Array.isArray(value)) return value.filter(item => !isSchedulers(item)).map(plain)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .filter(([field]) => !PASSING.has(field))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([field, inner]) => [named(field), plain(inner)]),
    )
  }
  return Object.fromEntries(
    [...objects].map(([name, object]) => {
      const secret = 'data' in object && name.startsWith('Secret ')
      const shown = secret ? { ...object, data: Object.keys(object.data as object).sort() } : object
      return [named(name), plain(shown) as KubernetesObject]
    }),
  )
}
