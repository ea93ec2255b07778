import assert from 'node:assert/strict'
import type { Problem } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import { freshId, type World } from '../world.ts'

/** A client that heard no answer asks again: with its key it gets the same operation, with another one a clear refusal. */
export const duplicateCreate = async (world: World): Promise<void> => {
  const tenant = await Tenant.create(world)
  const key = freshId('create-once')
  const answers = await Promise.all(Array.from({ length: 4 }, () => tenant.requestEnvironment('main', {}, { key })))
  const ids = new Set(answers.filter(answer => answer.status === 202).map(answer => answer.body.id))
  assert.equal(ids.size, 1, answers.map(answer => answer.text).join('\n'))
  // Whoever came while the first was under way was told so, and nothing else.
  for (const answer of answers.filter(({ status }) => status !== 202))
    assert.equal((answer.body as unknown as Problem).code, 'idempotency_in_progress')
  const [id] = [...ids]
  const replay = await tenant.requestEnvironment('main', {}, { key })
  assert.deepEqual([replay.status, replay.body.id, replay.headers.get('idempotency-replayed')], [202, id, 'true'])

  const other = await tenant.requestEnvironment('main', {}, { key: freshId('another-key') })
  assert.deepEqual([other.status, (other.body as unknown as Problem).code], [409, 'environment_exists'])
  const changed = await tenant.requestEnvironment('main', { kind: 'production' }, { key })
  assert.deepEqual([changed.status, (changed.body as unknown as Problem).code], [422, 'idempotency_key_reused'])

  await tenant.succeeded(id!)
  const created = (await tenant.auditEvents()).filter(event => event.action === 'create_environment')
  assert.equal(created.length, 1)
}
