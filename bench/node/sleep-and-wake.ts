/** Suspends and resumes of one environment, in turns with a bare StatefulSet that is scaled to zero and back. */
import type { OperationBody } from '../../e2e/api-client.ts'
import { bareCreated, bareRemoved, bareStarted, bareStopped } from './bare.ts'
import { askFor, type BenchWorld, operationMs, signIn } from './bench-world.ts'

/** Milliseconds of each round. */
export interface SleepAndWake {
  readonly suspend: readonly number[]
  readonly resume: readonly number[]
  /** Until a client had a session again. */
  readonly signedIn: readonly number[]
  readonly bareStop: readonly number[]
  readonly bareStart: readonly number[]
}

const ID = 'sleeper'

export const sleepAndWake = async (world: BenchWorld, rounds: number): Promise<SleepAndWake> => {
  const { tenant } = world
  const ask = (verb: 'suspend' | 'resume') => () =>
    tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(ID, `/${verb}`))
  const times = { suspend: [], resume: [], signedIn: [], bareStop: [], bareStart: [] } as Record<
    keyof SleepAndWake,
    number[]
  >
  await operationMs(world, () => askFor(world, ID))
  await bareCreated(world, ID)
  for (let round = 0; round < rounds; round++) {
    // Something to write out, as there is in life.
    await tenant.sql(ID, session => session.rows(`create table rows_${round} as select generate_series(1, 10000)`))
    times.suspend.push(await operationMs(world, ask('suspend')))
    const began = performance.now()
    times.resume.push(await operationMs(world, ask('resume')))
    await signIn(world, ID)
    times.signedIn.push(performance.now() - began)
    times.bareStop.push(await bareStopped(world, ID))
    times.bareStart.push(await bareStarted(world, ID))
  }
  await tenant.run('delete', ID)
  await bareRemoved(world, ID)
  return times
}
