import assert from 'node:assert/strict'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { bodyOf, type CommandWorld, commandWorld, createBody, pathOf } from '../../testkit/command-world.ts'
import { findEnvironment } from '../store/environments.ts'
import { listPendingIntents } from '../store/intents.ts'
import { createEnvironment } from './create-environment.ts'

export const isCode = (code: string, details?: Readonly<Record<string, unknown>>) => (error: unknown) => {
  assert.ok(error instanceof DomainError, String(error))
  assert.equal(error.code, code)
  if (details !== undefined) assert.deepEqual({ ...error.details, ...details }, error.details)
  return true
}

describe('createEnvironment', () => {
  let world: CommandWorld
  before(async () => (world = await commandWorld()))
  after(() => world.stop())

  it('answers 202 with a pending operation and leaves row, intent and event', async () => {
    const reply = await createEnvironment(world.deps, world.call(world.owner), createBody('pr-41'))
    const operation = bodyOf(reply)
    assert.equal(reply.status, 202)
    assert.equal(operation.state, 'pending')
    const row = await findEnvironment(world.plane.database, pathOf('pr-41'))
    assert.equal(row?.phase, 'requested')
    const [intent] = await listPendingIntents(world.plane.database, row.id)
    assert.equal(intent?.operationId, operation.id)
  })
})
