/** What tests leave running on a node that is played goes while somebody still plays it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { namespaces } from './cluster.ts'
import { POD } from './pod-faker.ts'

const ENOUGH_MS = 15_000

/** Takes the finalizers of pods whose namespaces are being deleted, whose holder is gone, until there are none; or for long enough. */
export const letPodsGo = async (objects: KubernetesObjects): Promise<void> => {
  for (const end = Date.now() + ENOUGH_MS; Date.now() < end; ) {
    const all = (await objects.list(namespaces)).items
    const going = new Set(
      all.filter(({ metadata }) => metadata?.deletionTimestamp !== undefined).map(({ metadata }) => metadata?.name),
    )
    const left = (await objects.list(POD)).items.filter(({ metadata }) => going.has(metadata?.namespace))
    if (left.length === 0) return
    for (const { metadata } of left) {
      if (metadata?.deletionTimestamp === undefined || metadata.finalizers === undefined) continue
      const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' }
      await objects.merge(POD, key, { metadata: { uid: metadata.uid, finalizers: null } }).catch((error: unknown) => {
        if (!isStoreError(error, 'NotFound', 'Conflict')) throw error
      })
    }
    await sleep(100)
  }
}
