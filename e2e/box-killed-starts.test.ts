/** First starts that are cut short: the next start goes on from there. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIRST_ORGANIZATION } from '../box/first-start.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { sized } from '../testkit/full.ts'
import { BoxProcess } from './box-process.ts'
import { firstEnvironmentServes } from './first-environment.ts'

describe('a single box that is killed at its first start', function () {
  this.timeout(240_000)
  let box: BoxProcess
  beforeEach(async () => {
    box = await BoxProcess.create()
  })
  afterEach(() => box.remove())

  const waitFor = async (what: string, isSo: () => boolean): Promise<void> => {
    const until = Date.now() + 60_000
    while (!isSo()) {
      assert.ok(Date.now() < until && box.running, `Never ${what}:\n${box.output}`)
      await sleep(2)
    }
  }
  /** Moments of a first start, each a place to be killed at. */
  const MOMENTS: readonly (readonly [string, (box: BoxProcess) => boolean])[] = [
    ['its token was written', ({ home }) => existsSync(join(home, 'credentials.json'))],
    ['the folder was taken', ({ home }) => existsSync(join(home, 'layout.json'))],
    ['the control-plane database was made', box => existsSync(join(box.dataFolders().controlPlane, 'PG_VERSION'))],
    ['the control-plane database ran', box => findPostmaster(box.dataFolders().controlPlane)?.status === 'ready'],
    ['the first environment had a folder', box => box.dataFolders().environments.length > 0],
  ]
  for (const [moment, isReached] of MOMENTS.slice(0, sized(1, MOMENTS.length)))
    it(`a first start that is killed when ${moment} is finished by the next one`, async () => {
      box.launch()
      await waitFor(moment, () => isReached(box))
      await box.stop('SIGKILL')
      await box.start()
      await firstEnvironmentServes(box)
      const { environments } = await box
        .api()
        .expect<{ environments: unknown[] }>(200, 'GET', `/v1/environments?organization_id=${FIRST_ORGANIZATION}`)
      assert.equal(environments.length, 1)
      assert.equal(box.dataFolders().environments.length, 1)
    })
})
