/** Whoever is not root runs a box as well: everything is theirs, Postgres included. */
import assert from 'node:assert/strict'
import { chownSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { canReach } from '../runtime/postgres/reach.ts'
import { runAs } from '../runtime/postgres/run-as.ts'
import { skipBecause } from '../testkit/skip-because.ts'
import { BoxProcess } from './box-process.ts'
import { singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'

/** Folders that are prepared ahead come and go meanwhile. */
const everythingIn = (folder: string): string[] => {
  for (let tries = 1; ; tries++)
    try {
      return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === 20) throw error
    }
}

describe('a single box of an ordinary user', function () {
  this.timeout(120_000)
  const account = runAs(undefined)
  before(async function () {
    if (account !== undefined && (await canReach(process.execPath, account))) return
    skipBecause(this, 'needs root, and a checkout that another account can read')
  })

  it('goes the whole way, and leaves nothing that is not its user’s', async () => {
    assert.ok(account)
    const box = await BoxProcess.create({ account })
    chownSync(dirname(box.home), account.uid, account.gid)
    try {
      await box.start()
      const world = singleBoxWorld(box)
      const tenant = await Tenant.create(world)
      await tenant.createEnvironment('main')
      await tenant.sql('main', session => session.rows('create table kept as select 42 as answer'))
      await tenant.run('suspend', 'main')
      await tenant.run('resume', 'main')
      assert.deepEqual(await tenant.sql('main', session => session.rows('select answer from kept')), [{ answer: 42 }])
      const pids = [box.child.pid!, ...box.postgresProcesses()]
      assert.ok(pids.length > 2)
      for (const pid of pids) assert.equal(statSync(`/proc/${pid}`).uid, account.uid)
      // Nothing lies elsewhere: there is no need to.
      assert.equal(box.dataRoot, box.home)
      assert.deepEqual(
        everythingIn(box.home).filter(name => statSync(join(box.home, name), { throwIfNoEntry: false })?.uid === 0),
        [],
      )
      await tenant.run('delete', 'main')
      await world.close()
      const { code, output } = await box.stop()
      assert.equal(code, 0, output)
      assert.deepEqual(box.postgresProcesses(), [])
    } finally {
      await box.remove()
    }
  })
})
