/** Many environments at once, and as many bare StatefulSets. */
import { instanceName } from '../../crds/metadata.ts'
import { succeeded } from '../lifecycle.ts'
import { bareCreated, bareRemoved } from './bare.ts'
import { askFor, type BenchWorld, signIn } from './bench-world.ts'
import type { Step, Steps } from './one-by-one.ts'

/**
 * Ten clients that look every few milliseconds are work for the machine that is measured; people's look every few seconds. When an
 * operation succeeded, it says itself.
 */
const POLL_MS = 500

export interface AtOnce {
  /** Milliseconds until the last one was ready, of each round. */
  readonly ours: readonly number[]
  readonly bare: readonly number[]
  /** Milliseconds since the first call of each step of each one. */
  readonly ourSteps: readonly Steps[]
  readonly bareSteps: readonly Steps[]
}

export const atOnce = async (world: BenchWorld, count: number, rounds: number): Promise<AtOnce> => {
  const times = { ours: [] as number[], bare: [] as number[], ourSteps: [] as Steps[], bareSteps: [] as Steps[] }
  for (let round = 0; round < rounds; round++) {
    const ids = Array.from({ length: count }, (_, i) => `many-${round}-${i}`)
    const bareRound = async (): Promise<void> => {
      const steps = await bareAtOnce(world, ids)
      times.bareSteps.push(...steps)
      times.bare.push(lastOf(steps, 'pod ready'))
    }
    // Whoever comes second finds a machine that has just worked hard: in turns.
    if (round % 2 === 1) await bareRound()
    const steps = await oursAtOnce(world, ids)
    times.ourSteps.push(...steps)
    times.ours.push(lastOf(steps, 'succeeded'))
    if (round % 2 === 0) await bareRound()
  }
  return times
}

const lastOf = (all: readonly Steps[], step: Step): number => Math.max(...all.map(steps => steps.get(step) ?? NaN))

const oursAtOnce = async (world: BenchWorld, ids: readonly string[]): Promise<readonly Steps[]> => {
  const { tenant, sightings } = world
  const { organizationId, projectId } = tenant
  const from = Date.now()
  const steps = await Promise.all(
    ids.map(async environmentId => {
      const operation = await succeeded(tenant, () => askFor(world, environmentId), POLL_MS)
      const succeededMs = Date.parse(operation.updated_at) - from
      await signIn(world, environmentId)
      const signedIn = Date.now() - from
      const { namespace } = tenant.key(environmentId)
      const seen = sightings.of(namespace, instanceName({ organizationId, projectId, environmentId }))
      return new Map<Step, number>([
        ...[...seen].map(([step, at]): [Step, number] => [step, at - from]),
        ['succeeded', succeededMs],
        ['signed in', signedIn],
      ])
    }),
  )
  await Promise.all(ids.map(id => tenant.run('delete', id)))
  return steps
}

const bareAtOnce = async (world: BenchWorld, names: readonly string[]): Promise<readonly Steps[]> => {
  const from = Date.now()
  await Promise.all(names.map(name => bareCreated(world, name)))
  const steps = names.map(
    name => new Map([...world.sightings.of(world.bareNamespace, name)].map(([step, at]) => [step, at - from])),
  )
  await Promise.all(names.map(name => bareRemoved(world, name)))
  return steps
}
