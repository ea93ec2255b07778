/** The scenarios on a real single box: one box for all of them, as its users share one. */
import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { environmentType } from '../crds/environment-type.ts'
import { shortUid } from '../crds/metadata.ts'
import { sized } from '../testkit/full.ts'
import { BoxProcess } from './box-process.ts'
import { auditIsComplete } from './scenarios/audit-is-complete.ts'
import { deleteInEveryPhase } from './scenarios/delete-in-every-phase.ts'
import { duplicateCreate } from './scenarios/duplicate-create.ts'
import { expiry } from './scenarios/expiry.ts'
import { protection } from './scenarios/protection.ts'
import { racingChanges } from './scenarios/racing-changes.ts'
import { retainAndReuse } from './scenarios/retain-and-reuse.ts'
import { tenAtOnce } from './scenarios/ten-at-once.ts'
import { wholeLife } from './scenarios/whole-life.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'

describe('a single box', function () {
  this.timeout(120_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  before(async () => {
    box = await BoxProcess.start()
    world = singleBoxWorld(box)
  })
  after(async () => {
    await world.close()
    try {
      const { code, output } = await box.stop()
      assert.equal(code, 0, output)
      assert.deepEqual(box.postgresProcesses(), [])
    } finally {
      await box.remove()
    }
  })

  it('says where things are after its first start, and keeps its secrets to itself', async () => {
    assert.match(box.output, /^ {2}Token +svc_pat_/m)
    const uri = /psql "([^"]+)"/.exec(box.output)?.[1]
    assert.ok(uri, box.output)
    const session = await world.openSql(uri)
    assert.deepEqual(await session.rows('select current_user::text as name'), [{ name: 'app' }])
    await session.close()
    for (const file of ['credentials.json', 'secrets/master.key', 'secrets/control-plane.json', 'control-plane.log'])
      assert.equal(statSync(join(box.home, file)).mode & 0o777, 0o600, file)
  })

  it('whole life of an environment', () => wholeLife(world))
  it('a create asked for twice', () => duplicateCreate(world))
  it('ten creates at once', () => tenAtOnce(world))
  it('expiry', () => expiry(world))
  it('deletion in every phase', () => deleteInEveryPhase(world))
  it('deletion protection, and what lifting it does', () => protection(world, sized(0, 1) === 1))
  it('an id deleted with retain and used again', () => retainAndReuse(world, sized(3, 20)))
  it('suspend, resume, delete and outside patches racing', () => racingChanges(world, sized(2, 20)))
  it('the audit log is what was done', () => auditIsComplete(world))

  it('nothing is left of what was deleted: no folder, no socket, no process', async () => {
    const { items } = await world.store.list(environmentType)
    const owners = items.map(({ metadata }) => shortUid(metadata.uid))
    for (const below of ['environments', 'sockets'])
      assert.deepEqual(
        readdirSync(join(box.dataRoot, below)).filter(name => !owners.some(owner => name.includes(owner))),
        [],
        below,
      )
  })
})
