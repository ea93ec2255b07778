/** The control-plane database goes away under load and comes back: every call ends, and what was acknowledged is there. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { adoptServer, stopServer } from '../runtime/postgres/server-process.ts'
import { sized } from '../testkit/full.ts'
import type { Answer } from './api-client.ts'
import { BoxProcess } from './box-process.ts'
import { type SingleBoxWorld, singleBoxWorld } from './single-box-world.ts'
import { Tenant } from './tenant.ts'

/** Far above what the server allows itself; a call that takes longer hangs. */
const HANG_MS = 25_000
const WRITERS = 8

describe('the control-plane database stops and starts under load', function () {
  this.timeout(180_000)
  let box: BoxProcess
  let world: SingleBoxWorld
  before(async () => {
    box = await BoxProcess.start()
    world = singleBoxWorld(box)
  })
  after(async () => {
    await world.close()
    await box.remove()
  })

  it('no call hangs, no acknowledged write is lost, and refusals say when to come back', async () => {
    const tenant = await Tenant.create(world)
    await tenant.createEnvironment('steady')
    const acknowledged = new Set<string>()
    const refused: Answer<{ code: string }>[] = []
    let stopping = false
    let serial = 0
    const writer = async (): Promise<void> => {
      while (!stopping) {
        const id = `p-${++serial}`
        const path = `/v1/organizations/${tenant.organizationId}/projects/${id}`
        const begun = performance.now()
        try {
          const answer = await world.api.call<{ code: string }>('PUT', path, {
            body: { region: 'local', postgres_major: 17 },
            deadlineMs: HANG_MS,
          })
          if (answer.status === 200) acknowledged.add(id)
          else refused.push(answer)
        } finally {
          assert.ok(performance.now() - begun < HANG_MS)
        }
        await sleep(5)
      }
    }
    const writers = Promise.all(Array.from({ length: WRITERS }, writer))
    for (let round = 0; round < sized(2, 8); round++) {
      await sleep(400)
      const server = adoptServer(box.dataFolders().controlPlane)
      assert.ok(server, 'The control-plane database does not run')
      // By turns as an administrator would, and as the kernel does.
      await stopServer(server, round % 2 === 0 ? { fastMs: 20_000 } : { fastMs: 0, killMs: 20_000 })
      const seen = acknowledged.size
      const until = Date.now() + 30_000
      while (acknowledged.size === seen) {
        assert.ok(Date.now() < until, `Nothing is acknowledged any more; ${refused.length} refused`)
        await sleep(50)
      }
    }
    stopping = true
    await writers
    assert.ok(acknowledged.size > WRITERS, `${acknowledged.size} writes were acknowledged`)
    for (const { status, body, headers, text } of refused) {
      assert.equal(status, 503, text)
      assert.equal(body.code, 'database_unavailable')
      assert.match(headers.get('retry-after') ?? '', /^\d+$/)
    }
    const there = new Set<string>()
    for (let after: string | null = ''; after !== null; ) {
      const page: { projects: { project_id: string }[]; next_cursor: string | null } = await world.api.expect(
        200,
        'GET',
        `/v1/organizations/${tenant.organizationId}/projects?limit=200${after === '' ? '' : `&after=${after}`}`,
      )
      for (const { project_id } of page.projects) there.add(project_id)
      after = page.next_cursor
    }
    for (const id of acknowledged) assert.ok(there.has(id), `${id} is lost`)
    // The audit log says the same, in numbers.
    const events = (await tenant.auditEvents(200)).filter(event => event.action === 'put_project')
    const audited = new Set(events.map(event => event.resource_id))
    for (const id of acknowledged) assert.ok(audited.has(id), `${id} is not in the audit log`)
    // And the operator is still at work.
    await tenant.run('suspend', 'steady')
    await tenant.run('resume', 'steady')
  })
})
