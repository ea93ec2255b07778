import assert from 'node:assert/strict'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** Several people work at once; the log, read in small pages to its end, holds what they did and nothing else. */
export const auditIsComplete = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  const done: string[] = [`put_organization ${tenant.organizationId}`, 'put_project app']
  await Promise.all(
    ['one', 'two', 'three'].map(async (id, index) => {
      const note = (action: string): number => done.push(`${action} ${id}`)
      await tenant.createEnvironment(id, { kind: 'preview', ttl_hours: 5 })
      note('create_environment')
      await tenant.sql(id, session => session.rows('select 1'))
      note('read_connection')
      for (let round = 0; round <= index; round++) {
        await world.api.expect(200, 'POST', tenant.path(id, '/renew'), { body: { ttl_hours: 6 + round } })
        note('renew_environment')
      }
      await world.api.expect(200, 'PATCH', tenant.path(id), { body: { deletion_policy: 'retain' } })
      note('update_environment')
      await tenant.run('suspend', id)
      note('suspend_environment')
      // What is refused is not done.
      const refused = await world.api.call('POST', tenant.path(id, '/suspend'))
      assert.equal(refused.status, 409, refused.text)
      await tenant.run('delete', id)
      note('delete_environment')
    }),
  )
  const events = await tenant.auditEvents(4)
  assert.deepEqual(
    events.map(event => event.id),
    events.map((_, index) => index + 1),
  )
  assert.deepEqual(events.map(event => `${event.action} ${event.resource_id.split('/').at(-1)}`).sort(), done.sort())
  for (const { actor } of events) assert.match(actor, /^user:usr_/)
}
