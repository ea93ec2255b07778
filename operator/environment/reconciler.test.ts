import assert from 'node:assert/strict'
import { conditionOf } from '../../crds/conditions.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS, ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { keyOf } from '../../lib/model/resource.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { CREATED_MS } from '../../testkit/gen.ts'
import { operatorWorld } from '../../testkit/operator-world.ts'
import { ConditionError } from '../host/host.ts'
import type { Namespaces } from './namespaces.ts'

const ready = (environment: Environment | undefined): string | undefined => {
  const condition = conditionOf(environment?.status?.conditions, 'Ready')
  return condition === undefined ? undefined : `${condition.status}/${condition.reason}`
}
const HOUR = 3_600_000

describe('the environment reconciler', () => {
  it('takes a new environment to ready with two status writes, its finalizer first', async () => {
    const world = operatorWorld()
    const key = await world.create({ request: { id: 'op_1', seq: 1, verb: 'create' } })
    const made = await world.settle(key)
    assert.equal(made?.status?.phase, 'ready')
    assert.equal(ready(made), 'True/Ready')
    assert.equal(made.status.everReady, true)
    assert.deepEqual(made.status.operation, { id: 'op_1', seq: 1, outcome: 'succeeded', attempts: 1 })
    assert.deepEqual(world.calls(), [
      'store.patch Environment',
      'store.patchStatus Environment',
      'credentials.write',
      'host.start',
      'host.applyCredentials',
      'store.patchStatus Environment',
    ])
    assert.deepEqual(world.moves, [
      { from: 'requested', to: 'provisioning' },
      { from: 'provisioning', to: 'ready' },
    ])
  })

  it('writes nothing about an environment that is as it should be, however often it looks', async () => {
    const world = operatorWorld()
    const key = await world.create()
    await world.settle(key)
    const before = world.store.writes()
    for (let look = 0; look < 50; look++) {
      world.pass(31_000)
      await world.reconcile(key)
    }
    world.restart()
    await world.reconcile(key)
    assert.equal(world.store.writes(), before)
    assert.deepEqual(world.calls(), [])
  })

  it('says nothing of one that is about to be deleted, and goes on when nobody does', async () => {
    const world = operatorWorld()
    const key = await world.create({ request: { id: 'op_1', seq: 1, verb: 'create' } })
    await world.settle(key)
    await world.edit(key, { request: { id: 'op_2', seq: 2, verb: 'delete' } })
    const before = world.store.writes()
    const requeueAfterMs = await world.reconcile(key)
    assert.equal(world.store.writes(), before)
    assert.ok(requeueAfterMs !== undefined && requeueAfterMs <= 1_000)
    // Whoever asked has ended between the two: it lives on.
    world.pass(requeueAfterMs)
    await world.reconcile(key)
    const kept = await world.store.get(environmentType, key)
    assert.deepEqual([kept?.status?.phase, kept?.status?.observedGeneration], ['ready', kept?.metadata.generation])
  })

  it('says suspended only once no process is left, and keeps the data over a resume', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    const instance = world.host.instances.get(metadata.uid)!
    await world.edit(key, { suspended: true, request: { id: 'op_2', seq: 2, verb: 'suspend' } })
    await world.reconcile(key)
    const stopping = await world.must(key)
    assert.equal(instance.state, 'stopping')
    assert.equal(stopping.status?.phase, 'ready')
    assert.equal(ready(stopping), 'False/Suspending')
    assert.equal(stopping.status.operation?.outcome, 'running')
    const suspended = await world.settle(key)
    assert.equal(instance.state, 'stopped')
    assert.equal(suspended?.status?.phase, 'suspended')
    assert.equal(suspended.status.operation?.outcome, 'succeeded')
    assert.equal(conditionOf(suspended.status.conditions, 'UncleanStop'), undefined)
    await world.edit(key, { suspended: false, request: { id: 'op_3', seq: 3, verb: 'resume' } })
    const resumed = await world.settle(key)
    assert.equal(resumed?.status?.phase, 'ready')
    assert.equal(resumed.status.operation?.outcome, 'succeeded')
    assert.equal(instance.inits, 1)
    assert.deepEqual(
      world.moves.slice(2).map(move => move.to),
      ['suspended', 'ready'],
    )
  })

  it('calls a killed environment updating, and ready again after a sign-in', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    world.host.kill(metadata.uid)
    await world.reconcile(key)
    assert.equal((await world.must(key)).status?.phase, 'updating')
    assert.equal((await world.settle(key))?.status?.phase, 'ready')
    assert.equal(world.host.instances.get(metadata.uid)?.inits, 1)
  })

  it('gives up after five failed starts, tries again later, and says both', async () => {
    const world = operatorWorld()
    world.host.failLaunches(7)
    const key = await world.create({ request: { id: 'op_1', seq: 1, verb: 'create' } })
    const seen: string[] = []
    for (let round = 0; round < 200 && seen.at(-1) !== 'ready'; round++) {
      world.pass(Math.min((await world.reconcile(key)) ?? 0, 30_000))
      const { status } = await world.must(key)
      if (status?.phase !== undefined && status.phase !== seen.at(-1)) seen.push(status.phase)
      if (status?.phase === 'failed_recoverable') {
        assert.equal(ready(await world.must(key)), 'False/Crashed')
        assert.equal(conditionOf(status.conditions, 'Reconciling')?.status, 'True')
        assert.equal(status.operation?.outcome, 'running')
      }
      world.host.tick()
    }
    assert.deepEqual(seen, ['provisioning', 'failed_recoverable', 'provisioning', 'ready'])
    const { status } = await world.must(key)
    assert.deepEqual(status?.operation, { id: 'op_1', seq: 1, outcome: 'succeeded', attempts: 2 })
    assert.equal(status.attempts, undefined)
  })

  it('tries a failed environment again at once when a resume is asked for', async () => {
    const world = operatorWorld()
    world.host.refuse('start', Infinity)
    const key = await world.create()
    for (let round = 0; (await world.get(key))?.status?.phase !== 'failed_recoverable'; round++) {
      assert.ok(round < 50, 'never failed')
      world.pass((await world.reconcile(key)) ?? 0)
    }
    const failed = await world.must(key)
    assert.equal(ready(failed), 'False/DiskFull')
    assert.equal(conditionOf(failed.status?.conditions, 'StorageReady')?.reason, 'DiskFull')
    world.host.refuse('start', 0)
    await world.edit(key, { request: { id: 'op_2', seq: 2, verb: 'resume' } })
    await world.reconcile(key)
    assert.equal((await world.must(key)).status?.phase, 'provisioning')
    const resumed = await world.settle(key)
    assert.equal(resumed?.status?.operation?.outcome, 'succeeded')
    assert.equal(conditionOf(resumed.status.conditions, 'StorageReady')?.status, 'True')
  })

  it('never makes an empty database where data was lost: it is stalled until the data is back', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    const instance = world.host.instances.get(metadata.uid)!
    world.host.loseData(metadata.uid)
    const lost = await world.settle(key)
    assert.equal(lost?.status?.phase, 'failed_recoverable')
    assert.equal(conditionOf(lost.status.conditions, 'Stalled')?.reason, 'DataMissing')
    assert.equal(conditionOf(lost.status.conditions, 'Reconciling'), undefined)
    assert.equal(instance.inits, 1)
    instance.initialized = true
    instance.state = 'stopped'
    world.pass(60_000)
    assert.equal((await world.settle(key))?.status?.phase, 'ready')
    assert.equal(instance.inits, 1)
  })

  it('sets the stored password again when the tenant changed it, without a word', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    const before = world.store.writes()
    world.host.changePassword(metadata.uid)
    world.pass(301_000)
    await world.reconcile(key)
    assert.equal(
      world.host.instances.get(metadata.uid)?.password,
      world.credentials.kept.get(metadata.uid)?.app.password,
    )
    assert.equal(world.store.writes(), before)
  })

  it('says no more than that Postgres did not take the passwords, and tries again', async () => {
    const world = operatorWorld()
    world.host.refuse('applyCredentials', 2, new Error("syntax error at alter role app password 'secret'"))
    const key = await world.create()
    world.pass((await world.reconcile(key)) ?? 0)
    world.host.tick()
    await world.reconcile(key)
    const { status } = await world.must(key)
    assert.equal(conditionOf(status?.conditions, 'CredentialsReady')?.reason, 'CredentialsNotApplied')
    assert.ok(!JSON.stringify(status).includes('secret'))
    assert.equal((await world.settle(key))?.status?.phase, 'ready')
  })

  it('makes new passwords where they were lost, and proves them', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    const old = world.credentials.kept.get(metadata.uid)?.app.password
    world.credentials.kept.clear()
    world.restart()
    assert.equal((await world.settle(key))?.status?.phase, 'ready')
    const fresh = world.credentials.kept.get(metadata.uid)?.app.password
    assert.notEqual(fresh, old)
    assert.equal(world.host.instances.get(metadata.uid)?.password, fresh)
  })

  it('restarts for other figures through updating, and reports what is in force', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    await world.edit(key, { resources: { memory: '512Mi' } })
    const changed = await world.settle(key)
    assert.deepEqual(
      world.moves.slice(2).map(move => move.to),
      ['updating', 'ready'],
    )
    assert.equal(changed?.status?.resources?.memory, '512Mi')
    assert.equal(world.host.instances.get(metadata.uid)?.spec?.memoryBytes, 512 * 2 ** 20)
    assert.equal(world.host.instances.get(metadata.uid)?.launches, 2)
    assert.equal(world.calls().filter(call => call === 'host.start').length, 2)
  })

  it('grows a disk without calling the environment updating', async () => {
    const world = operatorWorld()
    const key = await world.create()
    const { metadata } = (await world.settle(key))!
    await world.edit(key, { resources: { storage: '2Gi' } })
    const grown = await world.settle(key)
    assert.equal(world.moves.length, 2)
    assert.equal(grown?.status?.resources?.storage, '2Gi')
    assert.equal(grown.status.observedGeneration, grown.metadata.generation)
    assert.equal(world.host.instances.get(metadata.uid)?.spec?.storageBytes, 2 ** 31)
  })

  describe('deletion', () => {
    it('deals with the data, leaves one record, and lets go', async () => {
      const world = operatorWorld()
      const key = await world.create({ deletionPolicy: 'Retain' })
      const { metadata } = (await world.settle(key))!
      await world.edit(key, { request: { id: 'op_9', seq: 9, verb: 'delete' } })
      await world.remove(key)
      assert.equal(await world.settle(key), undefined)
      assert.equal(world.host.instances.size, 0)
      assert.equal(world.credentials.kept.size, 0)
      const records = await world.records()
      assert.equal(records.length, 1)
      const { spec } = records[0]!
      assert.deepEqual(
        [spec.uid, spec.cause, spec.retained, spec.retainedAt],
        [metadata.uid, 'request:op_9', true, `/trash/${metadata.uid}`],
      )
    })

    it('names the client behind a deletion that nobody asked the API for', async () => {
      const world = operatorWorld()
      const key = await world.create()
      await world.settle(key)
      await world.remove(key)
      await world.settle(key)
      assert.equal((await world.records())[0]?.spec.cause, 'external')
    })

    it('is served while paused, and starts nothing', async () => {
      const world = operatorWorld()
      const key = await world.create()
      await world.settle(key)
      await world.annotate(key, { [ANNOTATIONS.paused]: 'true' })
      await world.settle(key)
      await world.remove(key)
      world.restart()
      assert.equal(await world.settle(key), undefined)
      assert.ok(!world.calls().includes('host.start'))
      assert.equal((await world.records()).length, 1)
    })

    it('says what is in its way and goes on once that is gone', async () => {
      const world = operatorWorld()
      const key = await world.create()
      await world.settle(key)
      world.host.refuse('destroy', Infinity)
      await world.remove(key)
      await world.reconcile(key)
      const stuck = await world.must(key)
      assert.equal(stuck.status?.phase, 'deleting')
      assert.equal(ready(stuck), 'False/DiskFull')
      world.host.refuse('destroy', 0)
      world.pass(60_000)
      assert.equal(await world.settle(key), undefined)
    })

    it('asks ever more seldom for what does not move, and at once when the host has news', async () => {
      const world = operatorWorld()
      const key = await world.create()
      await world.settle(key)
      const inTheWay = new ConditionError('DatabaseReachable', 'NodeLost', 'Node n does not answer')
      world.host.refuse('destroy', Infinity, inTheWay)
      await world.remove(key)
      const asked = (): number => world.calls().filter(call => call === 'host.destroy').length
      for (let passed = 0; passed < 600_000; ) {
        const waitMs = (await world.reconcile(key)) ?? 60_000
        world.pass(waitMs)
        passed += waitMs
      }
      assert.ok(asked() < 20, `asked ${asked()} times in ten minutes`)
      await world.reconcile(key)
      const before = asked()
      await world.reconcile(key)
      assert.equal(asked(), before)
      world.suspect(key)
      await world.reconcile(key)
      assert.equal(asked(), before + 1)
      world.host.refuse('destroy', 0)
      world.suspect(key)
      await world.reconcile(key)
      world.host.tick()
      await world.reconcile(key)
      assert.equal(await world.get(key), undefined)
    })
  })

  describe('expiry', () => {
    it('sweeps a preview a minute after its time, with cause ttl', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 1 })
      const made = await world.settle(key)
      assert.equal(made?.status?.expiresAt, new Date(CREATED_MS + HOUR).toISOString())
      world.pass(CREATED_MS + HOUR + 59_000 - world.now())
      await world.reconcile(key)
      assert.equal((await world.must(key)).status?.phase, 'ready')
      world.pass(2_000)
      assert.equal(await world.settle(key), undefined)
      assert.equal((await world.records())[0]?.spec.cause, 'ttl')
    })

    it('loses to a renewal, also between its condition and its deletion', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 1 })
      await world.settle(key)
      world.pass(2 * HOUR)
      world.restart(1) // dies right after the condition was written
      await assert.rejects(world.reconcile(key))
      assert.equal(conditionOf((await world.must(key)).status?.conditions, 'Expired')?.status, 'True')
      await world.edit(key, { expiresAt: new Date(CREATED_MS + 9 * HOUR).toISOString() })
      world.restart()
      const renewed = await world.settle(key)
      assert.equal(renewed?.status?.phase, 'ready')
      assert.equal(conditionOf(renewed.status.conditions, 'Expired'), undefined)
    })

    it('loses to a renewal that comes while it is at it', async () => {
      const expiresAt = new Date(CREATED_MS + 9 * HOUR).toISOString()
      const world = operatorWorld({
        afterStatus: async (store, made) => {
          const expired = conditionOf(made.status?.conditions, 'Expired') !== undefined
          if (!expired || made.spec.expiresAt !== undefined) return
          await store.patch(environmentType, keyOf(made), { spec: { expiresAt } }, { uid: made.metadata.uid })
        },
      })
      const key = await world.create({ kind: 'preview', ttlHours: 1 })
      await world.settle(key)
      world.pass(2 * HOUR)
      const renewed = await world.settle(key)
      assert.equal(renewed?.status?.phase, 'ready')
      assert.equal(renewed.status.expiresAt, expiresAt)
      assert.equal(conditionOf(renewed.status.conditions, 'Expired'), undefined)
    })

    it('leaves a protected preview alone and says that it should be gone', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 1, deletionProtection: true })
      await world.settle(key)
      world.pass(2 * HOUR)
      const kept = await world.settle(key)
      assert.equal(kept?.status?.phase, 'ready')
      assert.equal(conditionOf(kept.status.conditions, 'Expired')?.reason, 'Protected')
    })

    it('gives a minute to whoever lifts the protection of an expired preview, counted from the first look after it', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 1, deletionProtection: true })
      await world.settle(key)
      world.pass(5 * HOUR)
      await world.settle(key)
      for (const rescue of [
        { deletionProtection: true },
        { expiresAt: new Date(CREATED_MS + 9 * HOUR).toISOString() },
      ]) {
        await world.edit(key, { deletionProtection: false })
        world.pass(10 * 60_000) // the operator was away
        world.restart()
        assert.ok(((await world.reconcile(key)) ?? Infinity) <= 60_000)
        assert.equal(conditionOf((await world.must(key)).status?.conditions, 'Expired')?.reason, 'InGrace')
        world.pass(59_000)
        world.restart()
        await world.reconcile(key)
        await world.edit(key, rescue)
        const kept = await world.settle(key)
        assert.equal(kept?.status?.phase, 'ready')
        assert.equal(kept.status.graceUntil, undefined)
      }
      world.pass(9 * HOUR)
      assert.equal(await world.settle(key), undefined)
      assert.equal((await world.records())[0]?.spec.cause, 'ttl')
    })

    it('counts the minute anew although a pause was in between', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 1, deletionProtection: true })
      await world.settle(key)
      world.pass(5 * HOUR)
      await world.annotate(key, { [ANNOTATIONS.paused]: 'true' })
      await world.settle(key)
      await world.edit(key, { deletionProtection: false })
      await world.settle(key)
      await world.annotate(key, { [ANNOTATIONS.paused]: null })
      await world.reconcile(key)
      assert.equal((await world.must(key)).status?.phase, 'ready')
      world.pass(60_000)
      assert.equal(await world.settle(key), undefined)
    })

    it('says once that the time is nearly over, and takes it back after a renewal', async () => {
      const world = operatorWorld()
      const key = await world.create({ kind: 'preview', ttlHours: 10 })
      const made = await world.settle(key)
      assert.equal(conditionOf(made?.status?.conditions, 'Expiring'), undefined)
      const writes = world.store.writes()
      for (let looks = 0; looks < 8; looks++) {
        world.pass(HOUR)
        await world.settle(key)
      }
      assert.equal(world.store.writes(), writes, 'far from its expiry nothing is written')
      world.pass(1.5 * HOUR)
      const warned = await world.settle(key)
      assert.equal(conditionOf(warned?.status?.conditions, 'Expiring')?.reason, 'ExpiresSoon')
      assert.equal(world.store.writes(), writes + 1)
      await world.settle(key)
      assert.equal(world.store.writes(), writes + 1)
      await world.edit(key, { ttlHours: 10, expiresAt: new Date(world.now() + 10 * HOUR).toISOString() })
      const renewed = await world.settle(key)
      assert.equal(conditionOf(renewed?.status?.conditions, 'Expiring'), undefined)
    })
  })

  describe('identity', () => {
    const namespaceOf = (labels: Record<string, string> | undefined): Namespaces => ({
      look: async () => (labels === undefined ? undefined : { labels, terminating: false }),
      onChange: () => () => undefined,
    })

    it('looks afresh at a namespace that a cache does not know to be ours yet', async () => {
      const labels = { 'svc.internal/organization': 'acme', 'svc.internal/project': 'shop' }
      const looks: boolean[] = []
      const world = operatorWorld({
        namespaces: {
          look: async (_, { fresh = false } = {}) => {
            looks.push(fresh)
            return fresh ? { labels, terminating: false } : undefined
          },
          onChange: () => () => undefined,
        },
      })
      const key = await world.create({ request: { id: 'op_1', seq: 1, verb: 'create' } })
      assert.equal((await world.settle(key))?.status?.operation?.outcome, 'succeeded')
      assert.ok(looks.includes(true))
    })

    it('never adopts an environment in a namespace of somebody else, nor records its deletion', async () => {
      const world = operatorWorld({ namespaces: namespaceOf({ 'svc.internal/organization': 'other' }) })
      const key = await world.create({ request: { id: 'op_1', seq: 1, verb: 'create' } })
      const refused = await world.settle(key, { restMs: 1 })
      assert.equal(conditionOf(refused?.status?.conditions, 'Stalled')?.reason, 'NamespaceMismatch')
      assert.equal(refused?.status?.operation?.outcome, 'failed')
      assert.deepEqual(refused.metadata.finalizers, [])
      await world.remove(key)
      await world.settle(key)
      assert.deepEqual(await world.records(), [])
      assert.deepEqual(world.calls(), ['store.patchStatus Environment'])
    })

    it('only watches an environment go whose namespace takes our rights along, and lets it go once nothing is left', async () => {
      let terminating = false
      const labels = { 'svc.internal/organization': 'acme', 'svc.internal/project': 'shop' }
      const world = operatorWorld({
        namespaces: { look: async () => ({ labels, terminating }), onChange: () => () => undefined },
      })
      const key = await world.create({ deletionPolicy: 'Retain' })
      await world.settle(key)
      const { uid } = (await world.must(key)).metadata
      world.host.refuse('destroy', Infinity, new StoreError('Forbidden', 'no right'))
      await world.remove(key)
      await assert.rejects(world.reconcile(key), /no right/)
      terminating = true
      await world.reconcile(key)
      assert.equal((await world.must(key)).status?.phase, 'deleting')
      world.host.loseData(uid)
      assert.equal(await world.settle(key), undefined)
      assert.deepEqual(
        (await world.records()).map(({ spec }) => [spec.retained, spec.retainedAt]),
        [[true, 'the volumes of the namespace svc-acme-shop']],
      )
    })

    it('lets such an environment go although it came with our finalizer', async () => {
      const world = operatorWorld({ namespaces: namespaceOf(undefined) })
      const key = await world.create()
      const { uid } = (await world.must(key)).metadata
      const metadata = { finalizers: [ENVIRONMENT_FINALIZER] }
      await world.store.patch(environmentType, key, { metadata }, { uid })
      await world.settle(key, { restMs: 1 })
      await world.remove(key)
      assert.equal(await world.settle(key), undefined)
      assert.deepEqual(await world.records(), [])
      assert.equal(world.host.instances.size, 0)
    })
  })
})
