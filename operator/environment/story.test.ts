import assert from 'node:assert/strict'
import { operatorWorld } from '../../testkit/operator-world.ts'
import { ConditionError } from '../host/host.ts'
import type { Events, StoryEvent } from './events.ts'

const HOUR = 3_600_000

const setUp = () => {
  const told: StoryEvent[] = []
  const events: Events = { tell: (_, event) => told.push(event) }
  const world = operatorWorld({ events })
  return {
    world,
    /** What was told since the last call. */
    story: (): string[] => told.splice(0).map(({ type, reason }) => (type === 'Normal' ? reason : `${reason}!`)),
    messages: (): string[] => told.splice(0).map(({ message }) => message),
  }
}

describe('the story of an environment', () => {
  it('tells a whole life in order, each thing once', async () => {
    const { world, story } = setUp()
    const key = await world.create()
    await world.settle(key)
    assert.deepEqual(story(), ['Provisioning', 'Ready'])
    await world.edit(key, { suspended: true })
    await world.settle(key)
    assert.deepEqual(story(), ['Suspending', 'Suspended'])
    await world.edit(key, { suspended: false })
    await world.settle(key)
    assert.deepEqual(story(), ['Resuming', 'Resumed'])
    await world.settle(key)
    assert.deepEqual(story(), [])
    await world.remove(key)
    await world.settle(key)
    assert.deepEqual(story(), ['Deleting', 'DataRemoved'])
  })

  it('names where the data of a deleted environment is kept', async () => {
    const { world, messages } = setUp()
    const key = await world.create({ deletionPolicy: 'Retain' })
    await world.settle(key)
    const { uid } = (await world.must(key)).metadata
    messages()
    await world.remove(key)
    await world.settle(key)
    assert.equal(messages().at(-1), `The data of this environment is kept: /trash/${uid}`)
  })

  it('tells why a server is restarted, where that was asked for', async () => {
    const { world, story } = setUp()
    const key = await world.create()
    await world.settle(key)
    story()
    await world.edit(key, { resources: { memory: '1Gi' } })
    await world.settle(key)
    assert.deepEqual(story(), ['RestartDue', 'Updating', 'Ready'])
    await world.edit(key, { resources: { memory: '1Gi', storage: '64Gi' } })
    await world.settle(key)
    assert.deepEqual(story(), [])
  })

  it('warns of what is wrong once, however often it is tried', async () => {
    const { world, story } = setUp()
    world.host.refuse('start', 3, new ConditionError('StorageReady', 'DiskFull', 'Cannot write: the disk is full'))
    const key = await world.create()
    await world.settle(key)
    assert.deepEqual(story(), ['Provisioning', 'DiskFull!', 'Ready'])
  })

  it('tells that a tenant’s password was corrected, and that lost ones were made anew', async () => {
    const { world, story } = setUp()
    const key = await world.create()
    await world.settle(key)
    const { uid } = (await world.must(key)).metadata
    story()
    world.host.changePassword(uid)
    world.pass(HOUR)
    await world.settle(key)
    assert.deepEqual(story(), ['DriftCorrected'])
    world.credentials.kept.clear()
    world.pass(HOUR)
    await world.settle(key)
    assert.deepEqual(story(), ['CredentialsRemade!', 'DriftCorrected'])
  })

  it('tells why an expired preview goes', async () => {
    const { world, story } = setUp()
    const key = await world.create({ kind: 'preview', ttlHours: 1 })
    await world.settle(key)
    story()
    world.pass(2 * HOUR)
    await world.settle(key)
    const told = story()
    assert.ok(told.indexOf('TTLExpired') < told.indexOf('Deleting'), told.join())
    assert.equal(told.at(-1), 'DataRemoved')
  })
})
