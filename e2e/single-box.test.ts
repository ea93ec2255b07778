/** The scenarios on a real single box: one box for all of them, as its users share one. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIRST_ENVIRONMENT, FIRST_ORGANIZATION, FIRST_PROJECT } from '../box/first-start.ts'
import { environmentType } from '../crds/environment-type.ts'
import { shortUid } from '../crds/metadata.ts'
import { sized } from '../testkit/full.ts'
import type { AuditEventBody } from './api-client.ts'
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
import { Tenant } from './tenant.ts'

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
    const said = (name: string): string | undefined => new RegExp(`^ {2}${name} +(\\S+)`, 'm').exec(box.output)?.[1]
    assert.equal(said('API'), box.baseUrl)
    assert.equal((await fetch(said('Reference')!)).status, 200)
    assert.match(await (await fetch(said('Metrics')!)).text(), /^environments\{phase="ready"\} 1$/m)
    const credentials = JSON.parse(readFileSync(said('Credentials')!, 'utf8')) as unknown
    assert.deepEqual(credentials, { base_url: box.baseUrl, organization_id: 'demo', token: said('Token') })
    assert.match(said('Token')!, /^svc_pat_/)
    const uri = /psql "([^"]+)"/.exec(box.output)?.[1]
    assert.ok(uri, box.output)
    const session = await world.openSql(uri)
    assert.deepEqual(await session.rows('select current_user::text as name'), [{ name: 'app' }])
    await session.close()
    for (const file of ['credentials.json', 'secrets/master.key', 'secrets/control-plane.json', 'control-plane.log'])
      assert.equal(statSync(join(box.home, file)).mode & 0o777, 0o600, file)
  })

  it('makes on its first start through the public API what anybody could have made', async () => {
    const path = `/v1/organizations/${FIRST_ORGANIZATION}`
    const { kind, phase } = await world.api.expect<{ kind: string; phase: string }>(
      200,
      'GET',
      `${path}/projects/${FIRST_PROJECT}/environments/${FIRST_ENVIRONMENT}`,
    )
    assert.deepEqual([kind, phase], ['staging', 'ready'])
    const { tokens } = await world.api.expect<{ tokens: { id: string }[] }>(200, 'GET', '/v1/account/tokens')
    const { events } = await world.api.expect<{ events: AuditEventBody[] }>(200, 'GET', `${path}/audit-events`)
    assert.deepEqual(
      events.slice(0, 3).map(({ action, metadata }) => [action, metadata['credential_id']]),
      ['put_organization', 'put_project', 'create_environment'].map(action => [action, tokens[0]?.id]),
    )
  })

  it('lets one grep follow an operation from the call to its end', async () => {
    const tenant = await Tenant.create(world)
    await tenant.createEnvironment('traced')
    const ends = [await tenant.run('suspend', 'traced'), await tenant.run('resume', 'traced')]
    ends.push(await tenant.run('delete', 'traced'))
    const steps = ['apiserver: Request', 'dispatch: Carried what was asked for', 'dispatch: Operation ', 'operator: ']
    const missing = (): string[] => {
      const lines = readFileSync(join(box.home, 'control-plane.log'), 'utf8').split('\n').slice(0, -1)
      return ends.flatMap(({ id, kind }) => {
        const about = lines
          .filter(line => line.includes(id))
          .map(line => JSON.parse(line) as { part: string; msg: string })
        const said = about.map(({ part, msg }) => `${part}: ${msg}`)
        return steps
          .filter(step => !said.some(line => line.startsWith(step)))
          .map(step => `${kind} has no line "${step}": ${said.join('; ')}`)
      })
    }
    // The log is written in batches, and an answer does not wait for it.
    for (let attempt = 0; attempt < 100 && missing().length > 0; attempt++) await sleep(50)
    assert.deepEqual(missing(), [])
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

  it('a box that nobody asks anything of writes nothing', async () => {
    const version = async (): Promise<string> => (await world.store.list(environmentType)).resourceVersion
    await sleep(1000) // what was asked last has settled
    const before = await version()
    // In full, longer than the operator's resync and its proofs of sign-ins.
    await sleep(sized(2000, 45_000))
    assert.equal(await version(), before)
  })

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
