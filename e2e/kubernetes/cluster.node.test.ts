/** The scenarios of the single box on a real cluster, installed by Helm: one installation for all, as its users share one. */
import assert from 'node:assert/strict'
import { sized } from '../../testkit/full.ts'
import { auditIsComplete } from '../scenarios/audit-is-complete.ts'
import { deleteInEveryPhase } from '../scenarios/delete-in-every-phase.ts'
import { duplicateCreate } from '../scenarios/duplicate-create.ts'
import { expiry } from '../scenarios/expiry.ts'
import { protection } from '../scenarios/protection.ts'
import { racingChanges } from '../scenarios/racing-changes.ts'
import { retainAndReuse } from '../scenarios/retain-and-reuse.ts'
import { tenAtOnce } from '../scenarios/ten-at-once.ts'
import { wholeLife } from '../scenarios/whole-life.ts'
import { installedRelease, type Release } from './release.ts'

describe('a cluster', function () {
  this.timeout(300_000)
  let release: Release
  before(async () => {
    release = await installedRelease()
  })

  it('whole life of an environment', () => wholeLife(release.world))
  it('a create asked for twice', () => duplicateCreate(release.world))
  it('ten creates at once', () => tenAtOnce(release.world))
  it('expiry', () => expiry(release.world))
  it('deletion in every phase', () => deleteInEveryPhase(release.world))
  it('deletion protection, and what lifting it does', () => protection(release.world, sized(0, 1) === 1))
  it('an id deleted with retain and used again', () => retainAndReuse(release.world, sized(2, 20)))
  it('suspend, resume, delete and outside patches racing', () => racingChanges(release.world, sized(2, 20)))
  it('the audit log is what was done', () => auditIsComplete(release.world))
  it('helm test', async () => {
    assert.match(await release.helm('test', 'svc', '--timeout', '180s'), /Phase: +Succeeded/)
  })
})
