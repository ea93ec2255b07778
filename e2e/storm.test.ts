/** A storm: callers who want things all the time while everything around them dies; then everything must add up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sized } from '../testkit/full.ts'
import { BoxProcess } from './box-process.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { strikeControlPlane, strikeDatabase } from './storm/faults.ts'
import { judgeStorm } from './storm/oracle.ts'
import { SeededRandom } from './storm/seeded-random.ts'
import { Callers } from './storm/wishes.ts'
import { Tenant } from './tenant.ts'

const IDS = ['red', 'green', 'blue']

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

  const seeds = Array.from({ length: sized(1, 3) }, () => Math.floor(Math.random() * 2 ** 31))
  const chosen = process.env['STORM_SEED']
  for (const seed of chosen === undefined ? seeds : [Number(chosen)])
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
