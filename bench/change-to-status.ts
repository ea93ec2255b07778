/** From a change of a resource to the status that answers it, seen by a watcher of the store. */
import { environmentType } from '../crds/environment-type.ts'
import type { Tenant } from '../e2e/tenant.ts'
import { type Figure, quantile } from './figure.ts'

/** Changes an environment's spec many times through the store and waits for `status.observedGeneration` each time. */
export const changeToStatus = async (tenant: Tenant, environmentId: string, count: number): Promise<Figure> => {
  const { store } = tenant.world
  const key = tenant.key(environmentId)
  const durations: number[] = []
  for (let i = 0; i < count; i++) {
    const before = await store.get(environmentType, key)
    if (before === undefined) throw new Error(`There is no ${key.name}`)
    const ended = new AbortController()
    const events = store.watch(environmentType, {
      from: before.metadata.resourceVersion,
      selector: { namespace: key.namespace },
      signal: ended.signal,
    })
    const start = performance.now()
    const changed = await store.patch(
      environmentType,
      key,
      { spec: { deletionProtection: i % 2 === 0 } },
      { uid: before.metadata.uid },
    )
    for await (const event of events) {
      if (event.type !== 'modified' || event.object.metadata.name !== key.name) continue
      if ((event.object.status?.observedGeneration ?? 0) < changed.metadata.generation) continue
      durations.push(performance.now() - start)
      ended.abort()
      break
    }
  }
  return {
    name: `change of a spec → status answers it, p50 / p99 of ${count}`,
    value: `${quantile(durations, 0.5).toFixed(1)} ms / ${quantile(durations, 0.99).toFixed(1)} ms`,
    aim: 'shown',
  }
}
