/** What is left of environments in a project's namespace, whatever its kind; and their volumes, which are in none. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1PersistentVolume } from '@kubernetes/client-node'
import type { KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { everythingIn } from './everything-in.ts'
import type { Release } from './release.ts'

const VOLUME: ObjectType<V1PersistentVolume> = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  clusterScoped: true,
}

/** What the operator makes for a project, and its environments share. */
const OF_PROJECT = /^(RoleBinding svc-(operator|apiserver)|(ServiceAccount|NetworkPolicy) svc-postgres)$/
/** Every kind that discovery knows but the story of what was. */
const STORIES = /^events$/

/** Claims of a namespace's volumes, with what becomes of each and how it is. */
export const volumesOf = async (
  objects: KubernetesObjects,
  namespace: string,
): Promise<readonly V1PersistentVolume[]> =>
  (await objects.list(VOLUME)).items.filter(({ spec }) => spec?.claimRef?.namespace === namespace)

/** Has volumes that outlive their claims, as they should, removed by whoever provisioned them; call it when no operator is there. */
export const dropVolumes = async (objects: KubernetesObjects, namespace: string): Promise<void> => {
  for (const { metadata } of await volumesOf(objects, namespace))
    try {
      const key = { namespace: '', name: metadata?.name ?? '' }
      await objects.merge(VOLUME, key, { spec: { persistentVolumeReclaimPolicy: 'Delete' } })
    } catch (error) {
      // Its provisioner may be removing it already.
      if (!isStoreError(error, 'NotFound')) throw error
    }
}

/** Waits until nothing of environments is there. @throws AssertionError with what stays */
export const nothingIsLeft = async ({ cluster }: Pick<Release, 'cluster'>, namespace: string): Promise<void> => {
  for (const until = Date.now() + 60_000; ; ) {
    const objects = [...(await everythingIn(cluster.api, namespace, STORIES)).keys()].filter(
      title => !OF_PROJECT.test(title),
    )
    const volumes = (await volumesOf(cluster.objects, namespace)).map(({ metadata }) => metadata?.name ?? '')
    if (objects.length + volumes.length === 0) return
    assert.ok(Date.now() < until, `Left: ${[...objects, ...volumes].join(', ')}`)
    await sleep(250)
  }
}
