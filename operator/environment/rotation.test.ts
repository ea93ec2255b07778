import assert from 'node:assert/strict'
import { conditionOf } from '../../crds/conditions.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'
import { Died } from '../../testkit/counting-ports.ts'
import { operatorWorld } from '../../testkit/operator-world.ts'
import { ConditionError } from '../host/host.ts'

const request = (seq: number, verb: string) => ({ request: { id: `op_${seq}`, seq, verb } })

/** A world with a ready environment, in which no password is published that the server would refuse. */
const setUp = async (spec: Parameters<ReturnType<typeof operatorWorld>['create']>[0] = {}) => {
  const published: string[] = []
  const world = operatorWorld({
    afterCredentials: (uid, { app }) => {
      if (published.at(-1) === app.password) return
      published.push(app.password)
      const served = world.host.instances.get(uid)?.password
      assert.ok(published.length === 1 || served === app.password, 'published a password that Postgres refuses')
    },
  })
  const key = await world.create(spec)
  const made = await world.settle(key)
  assert.equal(made?.status?.phase, 'ready')
  const { uid } = made.metadata
  return {
    world,
    key,
    uid,
    published,
    kept: (): CredentialSet => world.credentials.kept.get(uid)!,
    served: () => world.host.instances.get(uid)?.password,
  }
}

describe('a rotation of passwords', () => {
  it('keeps the new ones, sets them, proves them, and only then publishes them', async () => {
    const { world, key, kept, served } = await setUp()
    const before = kept()
    world.restart()
    await world.edit(key, { credentialsRotation: 'first', ...request(1, 'rotate') })
    const after = await world.settle(key)
    assert.deepEqual(
      world.calls().filter(call => !call.includes('patchStatus')),
      ['credentials.write', 'host.applyCredentials', 'credentials.write'],
    )
    assert.notEqual(kept().app.password, before.app.password)
    assert.notEqual(kept().ops.password, before.ops.password)
    assert.equal(kept().next, undefined)
    assert.equal(served(), kept().app.password)
    assert.equal(after?.status?.phase, 'ready')
    assert.equal(after.status.operation?.outcome, 'succeeded')
    assert.equal(after.status.credentialsRotation, 'first')
    assert.equal(conditionOf(after.status.conditions, 'Reconciling'), undefined)
    assert.deepEqual([...new Set(world.moves.map(({ to }) => to))], ['provisioning', 'ready'])
  })

  it('happens once for each wish, and never for the same one again', async () => {
    const { world, key, published } = await setUp()
    for (const wish of ['first', 'second', 'second']) {
      await world.edit(key, { credentialsRotation: wish })
      await world.settle(key)
    }
    assert.equal(published.length, 3)
    world.restart()
    await world.settle(key)
    assert.equal(published.length, 3)
  })

  it('is not needed for passwords that were made after it was asked for', async () => {
    const { published, world, key, kept } = await setUp({ credentialsRotation: 'from the start' })
    assert.equal(published.length, 1)
    assert.equal(kept().rotation, 'from the start')
    assert.equal((await world.must(key)).status?.credentialsRotation, 'from the start')
  })

  it('waits while the environment is suspended, and is made good on at its resume', async () => {
    const { world, key, published } = await setUp()
    await world.edit(key, { suspended: true })
    await world.settle(key)
    await world.edit(key, { credentialsRotation: 'asleep' })
    assert.equal((await world.settle(key))?.status?.phase, 'suspended')
    assert.equal(published.length, 1)
    await world.edit(key, { suspended: false })
    const awake = await world.settle(key)
    assert.equal(awake?.status?.credentialsRotation, 'asleep')
    assert.equal(published.length, 2)
  })

  it('fails what it was asked by when a suspension overtakes it', async () => {
    const { world, key } = await setUp()
    await world.edit(key, { credentialsRotation: 'late', suspended: true, ...request(1, 'rotate') })
    assert.equal((await world.settle(key))?.status?.operation?.outcome, 'failed')
  })

  it('says why it does not get on, and gets on when that is over', async () => {
    const { world, key, published } = await setUp()
    const refusal = new ConditionError(
      'CredentialsReady',
      'CredentialsNotApplied',
      'Postgres did not take the passwords',
    )
    world.host.refuse('applyCredentials', 3, refusal)
    await world.edit(key, { credentialsRotation: 'stubborn', ...request(1, 'rotate') })
    await world.reconcile(key)
    const meanwhile = await world.must(key)
    assert.equal(conditionOf(meanwhile.status?.conditions, 'CredentialsReady')?.reason, 'CredentialsNotApplied')
    assert.equal(meanwhile.status?.operation?.outcome, 'running')
    assert.equal(published.length, 1)
    assert.equal((await world.settle(key))?.status?.operation?.outcome, 'succeeded')
    assert.equal(published.length, 2)
  })

  it('puts right what a crash or a hand left for clients to find', async () => {
    const { world, key, uid, kept } = await setUp()
    for (const left of ['an old password', undefined]) {
      if (left === undefined) world.credentials.published.delete(uid)
      else world.credentials.published.set(uid, left)
      world.pass(3_600_000)
      await world.settle(key)
      assert.equal(world.credentials.published.get(uid), kept().app.password)
    }
  })

  it('survives a death after each of its calls: the wish is served once, and nothing is published that is refused', async () => {
    const undisturbed = await setUp()
    undisturbed.world.restart()
    await undisturbed.world.edit(undisturbed.key, { credentialsRotation: 'first', ...request(1, 'rotate') })
    await undisturbed.world.settle(undisturbed.key)
    const calls = undisturbed.world.calls()
    assert.ok(calls.length >= 5, calls.join())
    for (const [index, call] of calls.entries()) {
      const { world, key, kept, served, published } = await setUp()
      world.restart(index + 1)
      await world.edit(key, { credentialsRotation: 'first', ...request(1, 'rotate') })
      await assert.rejects(world.settle(key), Died)
      world.restart()
      const after = await world.settle(key)
      assert.equal(after?.status?.operation?.outcome, 'succeeded', `after ${call}`)
      assert.equal(after.status.phase, 'ready')
      assert.equal(after.status.credentialsRotation, 'first')
      assert.equal(served(), kept().app.password)
      assert.equal(kept().next, undefined)
      assert.equal(published.length, 2, `after call ${index + 1}, ${call}`)
    }
  })
})
