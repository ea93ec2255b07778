/** A storm: callers who want things all the time while everything around them dies; then everything must add up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sized } from '../testkit/full.ts'
import { SeededRandom } from '../testkit/seeded-random.ts'
import { BoxProcess } from './box-process.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { strikeControlPlane, strikeDatabase } from './storm/faults.ts'
import { judgeStorm } from './storm/oracle.ts'
import { Callers } from './storm/wishes.ts'
import { Tenant } from './tenant.ts'

const IDS = ['red', 'green', 'blue']

/** The first found a fault once. A change is judged by storms that its predecessor weathered; `make storm` looks for new ones. */
const WEATHERED = [739866246, 700589850, 668682052]

/** STORM_SEED: a number to repeat one, `random` for a new one. */
const seeds = (): readonly number[] => {
  const chosen = process.env['STORM_SEED']
  if (chosen === 'random') return [Math.floor(Math.random() * 2 ** 31)]
  return chosen === undefined ? WEATHERED.slice(0, sized(1, 3)) : [Number(chosen)]
}

describe('a storm', function () {
  this.timeout(600_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  beforeEach(async () => {
    box = await BoxProcess.start()
    world = singleBoxWorld(box)
  })
  afterEach(async () => {
    await world.close()
    await box.remove()
  })

  for (const seed of seeds())
    it(`ends with everything in its place (STORM_SEED=${seed})`, async () => {
      const random = new SeededRandom(seed)
      const tenant = await Tenant.create(world)
      const callers = new Callers(tenant, world.store, IDS)
      const lives = IDS.map(() => callers.live(random.fork()))
      const struck: string[] = []
      const weather = async (strike: typeof strikeDatabase, own: SeededRandom): Promise<void> => {
        for (let strikes = Number(process.env['STORM_STRIKES'] ?? sized(3, 12)); strikes > 0; strikes--) {
          await sleep(own.between(300, 2500))
          struck.push(await strike(box, own))
        }
      }
      try {
        await Promise.all([weather(strikeControlPlane, random.fork()), weather(strikeDatabase, random.fork())])
        await sleep(1000)
        callers.end()
        await Promise.all(lives)
        await judgeStorm(world, tenant, box, callers, IDS)
      } catch (error) {
        callers.end()
        await Promise.allSettled(lives)
        throw new Error(`After ${struck.join(', ')}: ${(error as Error).message}`, { cause: error })
      }
    })
})
