/** The disk of one environment is full: it says so, its neighbours do not notice, and room repairs it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from '../crds/conditions.ts'
import { environmentType } from '../crds/environment-type.ts'
import { skipBecause } from '../testkit/skip-because.ts'
import { BoxProcess } from './box-process.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'

const mount = (...args: string[]): void => void execFileSync('mount', args)

/** Whether this process may mount: root in a container often may not. */
const canMount = (): boolean => {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return false
  try {
    execFileSync('unshare', ['--mount', 'true'])
    return true
  } catch {
    return false
  }
}

describe('a full disk of one environment', function () {
  this.timeout(180_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  let mounted: string | undefined
  before(async function () {
    if (!canMount()) skipBecause(this, 'needs to mount a small file system, which takes root')
    box = await BoxProcess.start()
    world = singleBoxWorld(box)
  })
  after(async () => {
    if (!canMount()) return
    await world.close()
    if (box.running) await box.stop('SIGKILL')
    await box.killPostgres()
    if (mounted !== undefined) execFileSync('umount', ['--lazy', mounted])
    await box.remove()
  })

  it('is told as a condition, leaves others untouched, and ends when there is room', async () => {
    const tenant = await Tenant.create(world)
    await Promise.all([tenant.createEnvironment('full'), tenant.createEnvironment('other')])
    await tenant.sql('full', session => session.rows('create table kept as select 42 as answer'))
    await tenant.run('suspend', 'full')
    const data = await world.dataFolder(tenant.key('full'))

    // The data folder moves onto a file system with hardly more room than it takes.
    const aside = `${data}.aside`
    renameSync(data, aside)
    execFileSync('mkdir', [data])
    mount('-t', 'tmpfs', '-o', 'size=100m,mode=0700', 'tmpfs', data)
    mounted = data
    execFileSync('cp', ['-a', `${aside}/.`, data])
    execFileSync('chown', ['--reference', aside, data])
    rmSync(aside, { recursive: true })
    await tenant.run('resume', 'full')

    await tenant.sql('full', async session => {
      await session.rows('create table filler (body text)')
      await session.rows('alter table filler alter body set storage external')
    })
    const fill = (rows: number) =>
      tenant.sql('full', session =>
        session.rows(`insert into filler select repeat('x', 8000) from generate_series(1, ${rows})`),
      )
    await assert.rejects(async () => {
      for (;;) await fill(1000)
    })
    const reasonOf = async (): Promise<string | undefined> => {
      const { status } = (await world.store.get(environmentType, tenant.key('full')))!
      return conditionOf(status?.conditions, 'StorageReady')?.reason
    }
    const until = Date.now() + 60_000
    while ((await reasonOf()) !== 'DiskFull') {
      assert.ok(Date.now() < until, `The condition says ${await reasonOf()}`)
      // What failed may leave room again, once a checkpoint or a vacuum comes by: whoever writes goes on.
      await fill(10).catch(() => undefined)
      await sleep(100)
    }
    const metrics = await (await fetch(box.metricsUrl)).text()
    assert.match(metrics, /^svc_local_instances_disk_low [1-9]/m)
    assert.equal((await tenant.environment('other')).phase, 'ready')
    assert.deepEqual(await tenant.sql('other', session => session.rows('select 1 as one')), [{ one: 1 }])
    await tenant.createEnvironment('third')

    mount('-o', 'remount,size=400m', data)
    await tenant.inPhase('full', 'ready')
    const rows = await tenant.sql('full', session => session.rows('select answer from kept'))
    assert.deepEqual(rows, [{ answer: 42 }])
    while ((await reasonOf()) === 'DiskFull') {
      assert.ok(Date.now() < until, 'The condition stays')
      await sleep(100)
    }
  })
})
