/** An environment whose Postgres cannot start: it says so, can be suspended, and heals when the cause is gone. */
import assert from 'node:assert/strict'
import { processesOf } from '../runtime/postgres/postmaster-pid.ts'
import { BoxProcess } from './box-process.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'

describe('an environment whose Postgres cannot start', function () {
  this.timeout(180_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  let tenant: Tenant
  before(async () => {
    box = await BoxProcess.start()
    world = singleBoxWorld(box)
    tenant = await Tenant.create(world)
  })
  after(async () => {
    await world.close()
    await box.remove()
  })

  const breakIt = (id: string): Promise<() => Promise<void>> => world.breakPostgres(tenant.key(id))

  it('becomes updating, then failed_recoverable with a reason, and ready again by itself', async () => {
    await tenant.createEnvironment('heals')
    await tenant.sql('heals', session => session.rows('create table kept as select 42 as answer'))
    const repair = await breakIt('heals')
    await tenant.inPhase('heals', 'updating')
    const failed = await tenant.inPhase('heals', 'failed_recoverable')
    assert.ok(failed.status_reason, JSON.stringify(failed))
    assert.ok(!JSON.stringify(failed).includes(box.home), 'The reason names a path of the machine')
    await repair()
    // At once, as somebody would who has repaired it.
    await tenant.run('resume', 'heals')
    const rows = await tenant.sql('heals', session => session.rows('select answer from kept'))
    assert.deepEqual(rows, [{ answer: 42 }])
  })

  it('is suspended while failed_recoverable, and no process of it exists once it says so', async () => {
    await tenant.createEnvironment('tired')
    const repair = await breakIt('tired')
    await tenant.inPhase('tired', 'failed_recoverable')
    await tenant.run('suspend', 'tired')
    assert.equal((await tenant.environment('tired')).phase, 'suspended')
    assert.deepEqual(processesOf(await world.dataFolder(tenant.key('tired'))), [])
    await repair()
    await tenant.run('resume', 'tired')
    await tenant.sql('tired', session => session.rows('select 1'))
  })
})
