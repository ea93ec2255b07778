/** Environments created and deleted one after another, with a bare StatefulSet between them now and then. */
import { setTimeout as sleep } from 'node:timers/promises'
import { instanceName } from '../../crds/metadata.ts'
import type { OperationBody } from '../../e2e/api-client.ts'
import { bareCreated, bareRemoved } from './bare.ts'
import { askFor, type BenchWorld, operationMs, signIn } from './bench-world.ts'
import type { Milestone } from './sightings.ts'

/** Of these there is one bare one. */
const BARE_EVERY = 3
/** What comes a moment after a success is counted with what it belongs to. */
const SETTLES_MS = 400

/** Milliseconds since the call, or since the bare one's, of each step. */
export type Steps = ReadonlyMap<Step, number>
export type Step = Milestone | 'answered' | 'succeeded' | 'signed in'

/** One environment: how long each part took, and when, in epoch milliseconds, its calls were made. */
export interface Life {
  readonly steps: Steps
  readonly deleteMs: number
  readonly created: { readonly from: number; readonly to: number }
  readonly deleted: { readonly from: number; readonly to: number }
}

export interface OneByOne {
  readonly lives: readonly Life[]
  readonly bare: readonly Steps[]
}

export const oneByOne = async (world: BenchWorld, count: number): Promise<OneByOne> => {
  const lives: Life[] = []
  const bare: Steps[] = []
  for (let i = 0; i < count; i++) {
    lives.push(await live(world, `one-${i}`))
    if (i % BARE_EVERY === 0) bare.push(await liveBare(world, `bare-${i}`))
  }
  return { lives, bare }
}

/** Creates one, signs in, deletes it. */
export const live = async (world: BenchWorld, id: string): Promise<Life> => {
  const { tenant, sightings } = world
  const { namespace } = tenant.key(id)
  const instance = instanceName({
    organizationId: tenant.organizationId,
    projectId: tenant.projectId,
    environmentId: id,
  })
  const from = Date.now()
  let answered = 0
  const succeeded = await operationMs(world, async () => {
    const operation = await askFor(world, id)
    answered = Date.now() - from
    return operation
  })
  await signIn(world, id)
  const signedIn = Date.now() - from
  await sleep(SETTLES_MS)
  const accepting = await acceptingAt(world, namespace, instance)
  const steps: Steps = new Map<Step, number>([
    ['answered', answered],
    ...[...sightings.of(namespace, instance)].map(([step, at]): [Step, number] => [step, at - from]),
    ['accepting', accepting - from],
    ['succeeded', succeeded],
    ['signed in', signedIn],
  ])
  const gone = Date.now()
  const deleteMs = await operationMs(world, () =>
    tenant.world.api.expect<OperationBody>(202, 'DELETE', tenant.path(id)),
  )
  await sleep(SETTLES_MS)
  return { steps, deleteMs, created: { from, to: gone }, deleted: { from: gone, to: Date.now() } }
}

const liveBare = async (world: BenchWorld, name: string): Promise<Steps> => {
  const { sightings, bareNamespace } = world
  const from = Date.now()
  await bareCreated(world, name)
  const seen = [...sightings.of(bareNamespace, name)]
  const accepting = await acceptingAt(world, bareNamespace, name)
  await bareRemoved(world, name)
  await sleep(SETTLES_MS)
  return new Map<Step, number>([
    ...seen.map(([step, at]): [Step, number] => [step, at - from]),
    ['accepting', accepting - from],
  ])
}

/** When its Postgres said so, by the clock of the node. */
const acceptingAt = async ({ installation }: BenchWorld, namespace: string, instance: string): Promise<number> => {
  const log = await installation.kubectl.must(['--namespace', namespace, 'logs', '--timestamps', `${instance}-0`])
  const line = log.split('\n').find(text => text.includes('ready to accept connections'))
  return Date.parse(line?.split(' ')[0] ?? '')
}
