/** The life of a bare StatefulSet, timed: what no control plane can be faster than. */
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import type { BenchWorld } from './bench-world.ts'
import { makeBare, removeBare, scaleBare } from './floor.ts'

const elapsed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** From the calls that make it to its pod Ready. */
export const bareCreated = ({ cluster, sightings, bareNamespace, image }: BenchWorld, name: string): Promise<number> =>
  elapsed(async () => {
    await makeBare(cluster.objects, { namespace: bareNamespace, name, image })
    await sightings.reached(bareNamespace, name, 'pod ready')
  })

/** From the call that scales it to zero to no pod. */
export const bareStopped = async (world: BenchWorld, name: string): Promise<number> => {
  const { cluster, sightings, bareNamespace: namespace } = world
  const uid = await podUid(world, name)
  return elapsed(async () => {
    await scaleBare(cluster.objects, { namespace, name }, 0)
    await sightings.gone(uid)
  })
}

/** From the call that scales it to one to its pod Ready. */
export const bareStarted = (
  { cluster, sightings, bareNamespace: namespace }: BenchWorld,
  name: string,
): Promise<number> =>
  elapsed(async () => {
    sightings.forget(namespace, name)
    await scaleBare(cluster.objects, { namespace, name }, 1)
    await sightings.reached(namespace, name, 'pod ready')
  })

/** Removes one, and waits until its pod is gone. */
export const bareRemoved = async (world: BenchWorld, name: string): Promise<void> => {
  const { cluster, sightings, bareNamespace: namespace } = world
  const uid = await podUid(world, name)
  await removeBare(cluster.objects, { namespace, name })
  await sightings.gone(uid)
}

const podUid = async ({ cluster, bareNamespace: namespace }: BenchWorld, name: string): Promise<string> =>
  (await cluster.objects.get(POD, { namespace, name: `${name}-0` }))?.metadata?.uid ?? ''
