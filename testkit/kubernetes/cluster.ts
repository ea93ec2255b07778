/**
 * The Kubernetes cluster that tests run against, always a real one. `SERVICE_TEST_API_KUBECONFIG` names one whose pods need not
 * run (falling back to `KUBECONFIG`), `KUBECONFIG` one with a node.
 */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { LABELS } from '../../crds/metadata.ts'
import { namespaces } from '../../runtime/kubernetes/core-kinds.ts'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject, KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import { openKubernetesApi } from '../../runtime/kubernetes/open-kubernetes-api.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { atEnd } from '../at-end.ts'
import { WIDGET_CRD, WIDGET_POLICY, WIDGET_POLICY_BINDING } from './widget-crd.ts'

/** A cluster, signed in to as its administrator. */
export interface TestCluster {
  readonly kubeconfig: string
  readonly api: KubernetesApi
  readonly objects: KubernetesObjects
  /** Another client; closed with the cluster. */
  open(name: string): Promise<KubernetesApi>
  /** Makes a namespace that nothing else uses, `t-<room>-<random>`; removed at the end of the run with all that is in it. */
  namespace(room: string, labels?: Readonly<Record<string, string>>): Promise<string>
  /** Makes sure that our own kinds are served. */
  installKinds(): Promise<void>
  /** Makes sure that the contract suites' Widget is served, and its policy in force. */
  installWidget(): Promise<void>
}

export { namespaces }

const crds: ObjectType<Crd> = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  clusterScoped: true,
}

interface Crd extends KubernetesObject {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string }[]
  }
}

/** On everything that tests make, so that a person can find what a killed run left. */
const TEST_LABEL = 'svc.internal/test-run'

const opened = new Map<string, Promise<TestCluster>>()

/** A cluster whose pods need not run. @throws Error when no cluster is given */
export const apiCluster = (): Promise<TestCluster> =>
  clusterOf(
    process.env['SERVICE_TEST_API_KUBECONFIG'] ?? process.env['KUBECONFIG'],
    'a Kubernetes API server: set SERVICE_TEST_API_KUBECONFIG or KUBECONFIG to the path of a kubeconfig',
  )

/** A cluster whose pods run. @throws Error when no cluster is given */
export const nodeCluster = (): Promise<TestCluster> =>
  clusterOf(process.env['KUBECONFIG'], 'a Kubernetes cluster with a node: set KUBECONFIG to the path of a kubeconfig')

const clusterOf = async (kubeconfig: string | undefined, what: string): Promise<TestCluster> => {
  if (kubeconfig === undefined || kubeconfig === '') throw new Error(`This test needs ${what}`)
  let cluster = opened.get(kubeconfig)
  if (cluster === undefined) opened.set(kubeconfig, (cluster = openCluster(kubeconfig)))
  return cluster
}

const openCluster = async (kubeconfig: string): Promise<TestCluster> => {
  const open = async (name: string): Promise<KubernetesApi> => {
    const { api } = await openKubernetesApi({ name, version: 'test', kubeconfig })
    atEnd(() => api.close())
    return api
  }
  const api = await open('svc-test')
  const objects = kubernetesObjects(api, 'svc-test')
  const run = randomBytes(4).toString('hex')
  const remove = (name: string): Promise<void> =>
    removeNamespace(api, objects, name, kubeconfig !== process.env['KUBECONFIG'])
  let kinds: Promise<void> | undefined
  let widget: Promise<void> | undefined
  return {
    kubeconfig,
    api,
    objects,
    open,
    namespace: async (room, labels) => {
      const name = `t-${room}-${randomBytes(5).toString('hex')}`
      await objects.create(namespaces, { metadata: { name, labels: { ...labels, [TEST_LABEL]: run } } })
      atEnd(() => remove(name))
      return name
    },
    installKinds: () =>
      (kinds ??= (async () => {
        for (const file of ['environments.yaml', 'deletionrecords.yaml'])
          await installCrd(api, objects, generatedCrd(file))
      })()),
    installWidget: () =>
      (widget ??= (async () => {
        await installCrd(api, objects, WIDGET_CRD)
        await objects.apply(policyType('ValidatingAdmissionPolicy'), WIDGET_POLICY)
        await objects.apply(policyType('ValidatingAdmissionPolicyBinding'), WIDGET_POLICY_BINDING)
        await untilGuarded(api, objects)
      })()),
  }
}

const generatedCrd = (file: string): Crd =>
  parse(readFileSync(join(import.meta.dirname, '../../crds/generated', file), 'utf8')) as Crd

const policyType = (kind: 'ValidatingAdmissionPolicy' | 'ValidatingAdmissionPolicyBinding'): ObjectType => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind,
  plural: kind.endsWith('Policy') ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings',
  clusterScoped: true,
})

/** Calls until it holds; the API server serves a new kind, and enforces a new policy, within seconds. */
const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise(resolve => setTimeout(resolve, 50)))
    if (await holds()) return
  throw new Error(`${what} did not come about within 30 s`)
}

const installCrd = async (api: KubernetesApi, objects: KubernetesObjects, crd: Crd): Promise<void> => {
  await objects.apply(crds, crd)
  const { group, names, versions } = crd.spec
  await until(`Serving ${names.plural}.${group}`, async () => {
    try {
      await api.call({
        method: 'GET',
        path: `/apis/${group}/${versions[0]!.name}/${names.plural}`,
        query: { limit: 1 },
      })
      return true
    } catch (error) {
      if (isStoreError(error, 'NotFound', 'TooManyRequests', 'Unavailable')) return false
      throw error
    }
  })
}

const untilGuarded = async (api: KubernetesApi, objects: KubernetesObjects): Promise<void> => {
  const name = `t-guard-${randomBytes(5).toString('hex')}`
  await objects.create(namespaces, { metadata: { name } })
  atEnd(() => removeNamespace(api, objects, name, false))
  const path = `/apis/contract.svc.internal/v1/namespaces/${name}/widgets`
  await api.call({
    method: 'POST',
    path,
    body: {
      apiVersion: 'contract.svc.internal/v1',
      kind: 'Widget',
      metadata: { name: 'guarded' },
      spec: { guarded: true },
    },
  })
  await until('Guarding widgets', async () => {
    try {
      await api.call({ method: 'DELETE', path: `${path}/guarded`, query: { dryRun: 'All' } })
      return false
    } catch (error) {
      return isStoreError(error, 'Forbidden')
    }
  })
}

/** Kinds whose finalizers would keep a test's namespace for ever. */
const HELD = [
  '/apis/contract.svc.internal/v1/%/widgets',
  '/apis/svc.internal/v1alpha1/%/environments',
  '/apis/svc.internal/v1alpha1/%/deletionrecords',
]

/** Asks for a namespace's deletion without waiting for it (that takes seconds), and frees what holds it. */
const removeNamespace = async (
  api: KubernetesApi,
  objects: KubernetesObjects,
  name: string,
  isPlayed: boolean,
): Promise<void> => {
  const namespace = await objects.get(namespaces, { namespace: '', name })
  if (namespace?.metadata?.uid === undefined) return
  if (namespace.metadata.labels?.[LABELS.protected] !== undefined)
    await objects.merge(namespaces, { namespace: '', name }, { metadata: { labels: { [LABELS.protected]: null } } })
  await objects.delete(namespaces, { namespace: '', name }, { uid: namespace.metadata.uid })
  // Played pods have no kubelet that would see them off, and whoever played them may have ended.
  if (isPlayed)
    await api.call({ method: 'DELETE', path: `/api/v1/namespaces/${name}/pods`, query: { gracePeriodSeconds: 0 } })
  for (const template of HELD) {
    const path = template.replace('%', `namespaces/${name}`)
    for (const { metadata } of await heldObjects(api, path))
      await api
        .call({
          method: 'PATCH',
          path: `${path}/${metadata?.name ?? ''}`,
          contentType: 'application/merge-patch+json',
          body: { metadata: { finalizers: null }, ...(path.endsWith('widgets') && { spec: { guarded: false } }) },
        })
        .catch((error: unknown) => {
          if (!isStoreError(error, 'NotFound')) throw error
        })
  }
}

const heldObjects = async (api: KubernetesApi, path: string): Promise<readonly KubernetesObject[]> => {
  try {
    return (await api.call<{ items: KubernetesObject[] }>({ method: 'GET', path })).items
  } catch (error) {
    // The kind was never installed.
    if (isStoreError(error, 'NotFound')) return []
    throw error
  }
}
