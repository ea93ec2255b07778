import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { environmentType } from '../../crds/environment-type.ts'
import type { EmbeddedResourceStore } from '../../runtime/embedded/embedded-resource-store.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { CarryingWorld } from '../../testkit/carrying-world.ts'
import { bodyOf, type CommandWorld, createBody, impatient, pathOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { createEnvironment } from './create-environment.ts'
import { deleteEnvironment } from './delete-environment.ts'
import type { CommandDependencies } from './dependencies.ts'
import { renewEnvironment } from './renew-environment.ts'

const HOUR_MS = 3_600_000

describe('renewEnvironment', () => {
  let carrying: CarryingWorld
  let world: CommandWorld
  let deps: CommandDependencies
  /** Everybody else's client of the store. */
  let kubectl: EmbeddedResourceStore
  before(async () => {
    carrying = await CarryingWorld.start()
    ;({ world, deps, kubectl } = carrying)
  })
  beforeEach(() => void (carrying.faults = {}))
  after(() => carrying.stop())

  const renew = (id: string, hours: number, key?: string, as: CommandDependencies = deps) =>
    renewEnvironment(as, world.call(world.owner, { key, body: { hours } }), pathOf(id), hours)
  const events = async (id: string) =>
    (await world.audit()).filter(
      ({ action, resourceId }) => action === 'renew_environment' && resourceId === `shop/${id}`,
    )

  it('has the store hold the expiry that it answers: ttl_hours from now', async () => {
    const id = await carrying.make({ ttl_hours: 1 })
    const before = Date.now()
    const record = bodyOf(await renew(id, 48))
    const { spec, metadata } = await carrying.resourceOf(id)
    assert.equal(record.ttl_hours, 48)
    assert.equal(spec.ttlHours, 48)
    assert.equal(record.expires_at_epoch_seconds, Math.floor(Date.parse(spec.expiresAt ?? '') / 1000))
    assert.ok(Math.abs(Date.parse(spec.expiresAt ?? '') - before - 48 * HOUR_MS) < 60_000)
    assert.equal(metadata.annotations['svc.internal/actor'], world.owner.subject)
    assert.equal((await carrying.rowOf(id)).expiresAt?.toISOString(), spec.expiresAt)
    const [event, ...others] = await events(id)
    assert.deepEqual(others, [])
    assert.deepEqual([event?.actor, event?.metadata['ttl_hours']], [world.owner.subject, 48])
    assert.equal(event?.metadata['expires_at'], spec.expiresAt)
    assert.equal(event?.metadata['client_ip'], '192.0.2.7')
  })

  it('gives an expiry to a preview that had none', async () => {
    const id = await carrying.make({}, { ...deps, settings: { ...deps.settings, previewDefaultTtlHours: 0 } })
    assert.equal((await carrying.resourceOf(id)).spec.expiresAt, undefined)
    assert.ok(bodyOf(await renew(id, 2)).expires_at_epoch_seconds)
  })

  describe('with an Idempotency-Key', () => {
    it('answers a repeated call with the same bytes and renews once', async () => {
      const id = await carrying.make()
      const key = randomUUID()
      const first = await renew(id, 5, key)
      const again = await renew(id, 5, key)
      assert.deepEqual(again.body, first.body)
      assert.deepEqual(
        [first, again].map(({ headers }) => headers?.['Idempotency-Replayed']),
        [undefined, 'true'],
      )
      assert.equal((await events(id)).length, 1)
      assert.equal((await carrying.resourceOf(id)).metadata.generation, 2)
    })

    it('renews once although many come at once, from two processes', async () => {
      const other = { ...world.secondProcess(), wakeDispatcher: deps.wakeDispatcher }
      for (let round = 0; round < sized(3, 40); round++) {
        const id = await carrying.make()
        const key = randomUUID()
        const replies = await Promise.all([1, 2, 3, 4, 5].map(n => renew(id, 9, key, n % 2 === 0 ? deps : other)))
        assert.equal(new Set(replies.map(reply => JSON.stringify(bodyOf(reply)))).size, 1)
        assert.equal(replies.filter(({ headers }) => headers === undefined).length, 1)
        assert.equal((await events(id)).length, 1)
        assert.equal((await carrying.resourceOf(id)).metadata.generation, 2)
      }
    })

    it('refuses another body before anything is changed, also while the first call runs', async () => {
      for (let round = 0; round < sized(3, 40); round++) {
        const id = await carrying.make()
        const key = randomUUID()
        const results = await Promise.allSettled([renew(id, 5, key), renew(id, 900, key)])
        const won = results.flatMap(result => (result.status === 'fulfilled' ? [bodyOf(result.value).ttl_hours] : []))
        const lost = results.flatMap(result => (result.status === 'rejected' ? [result.reason as unknown] : []))
        assert.deepEqual([won.length, lost.length], [1, 1])
        isCode('idempotency_key_reused')(lost[0])
        assert.equal((await carrying.rowOf(id)).ttlHours, won[0])
        assert.equal((await carrying.resourceOf(id)).spec.ttlHours, won[0])
        await assert.rejects(renew(id, 7, key), isCode('idempotency_key_reused'))
        assert.deepEqual([(await events(id)).length, (await carrying.resourceOf(id)).metadata.generation], [1, 2])
      }
    })

    it('leaves one event when the answer to its commit is lost', async () => {
      const link = await lossyLink((await testCluster()).socketFolder)
      const process = world.secondProcess({ url: `postgres://svc_api@127.0.0.1:${link.port}/${world.plane.name}` })
      const lossy = { ...process, wakeDispatcher: deps.wakeDispatcher }
      const id = await carrying.make()
      const key = randomUUID()
      link.loseNextCommit()
      const reply = await renew(id, 3, key, lossy)
      assert.equal(link.lost, 1)
      assert.equal(reply.headers, undefined)
      assert.equal((await events(id)).length, 1)
      assert.deepEqual((await renew(id, 3, key)).body, reply.body)
      link.stop()
    })
  })

  it('refuses what does not expire, has expired, or is going', async () => {
    await assert.rejects(renew(await carrying.make({ kind: 'staging' }), 1), isCode('not_a_preview'))
    await assert.rejects(renew('nowhere', 1), isCode('environment_not_found'))

    const deleting = await carrying.make()
    await deleteEnvironment({ ...deps, wakeDispatcher: () => undefined }, world.call(world.owner), pathOf(deleting))
    await assert.rejects(renew(deleting, 1), isCode('operation_in_progress'))

    const expired = await carrying.make()
    await expire(expired)
    const key = randomUUID()
    await assert.rejects(renew(expired, 1, key), isCode('environment_expired'))
    await assert.rejects(renew(expired, 1, key), isCode('environment_expired'))

    const gone = await carrying.make()
    const { metadata: dying } = await carrying.resourceOf(gone)
    await kubectl.delete(environmentType, dying, { uid: dying.uid })
    await assert.rejects(renew(gone, 1), isCode('operation_in_progress'))
    for (const id of [deleting, expired, gone]) assert.deepEqual(await events(id), [])
  })

  /** Moves its expiry into the past, and waits until the row says so. */
  const expire = async (id: string): Promise<void> => {
    const { metadata } = await carrying.resourceOf(id)
    const expiresAt = new Date(Date.now() - HOUR_MS)
    await kubectl.patch(
      environmentType,
      metadata,
      { spec: { expiresAt: expiresAt.toISOString() } },
      { uid: metadata.uid },
    )
    while ((await carrying.rowOf(id)).expiresAt?.getTime() !== expiresAt.getTime());
  }

  it('renews an expired preview that its protection keeps', async () => {
    const id = await carrying.make({ deletion_protection: true })
    await expire(id)
    assert.equal(bodyOf(await renew(id, 3)).ttl_hours, 3)
    assert.ok(Date.parse((await carrying.resourceOf(id)).spec.expiresAt ?? '') > Date.now())
  })

  it('waits for what is still on its way to the store, and takes itself back when that takes too long', async () => {
    let holds = true
    carrying.faults = {
      before: async ({ verb }) => {
        while (verb === 'create' && holds) await new Promise(resolve => setTimeout(resolve, 5))
      },
    }
    const id = carrying.freshId()
    await createEnvironment(deps, world.call(world.owner), createBody(id, { ttl_hours: 9 }))
    await assert.rejects(renew(id, 1, undefined, impatient(deps)), isCode('store_unavailable'))
    const renewing = renew(id, 2)
    holds = false
    assert.equal(bodyOf(await renewing).ttl_hours, 2)
    assert.equal((await events(id)).length, 1)
    assert.equal((await carrying.resourceOf(id)).metadata.generation, 2)
  })

  it('looks again when the resource changes in between', async () => {
    const id = await carrying.make()
    const { metadata } = await carrying.resourceOf(id)
    let disturbances = 3
    carrying.faults = {
      before: async ({ verb }) => {
        if (verb !== 'patch' || disturbances-- <= 0) return
        const annotations = { noise: String(disturbances) }
        await kubectl.patch(environmentType, metadata, { metadata: { annotations } }, { uid: metadata.uid })
      },
    }
    await renew(id, 9)
    assert.equal((await carrying.resourceOf(id)).spec.ttlHours, 9)
    assert.ok(disturbances < 0)
    assert.equal((await events(id)).length, 1)
  })

  it('loses to a sweep that came first, and makes one that comes later fail: never both', async () => {
    for (let round = 0; round < sized(5, 60); round++) {
      const id = await carrying.make()
      const { metadata } = await carrying.resourceOf(id)
      const { uid, resourceVersion } = metadata
      const sweeps: Promise<boolean>[] = []
      carrying.faults = {
        before: ({ verb }) => {
          if (verb !== 'patch') return
          const sweep = kubectl.delete(environmentType, metadata, { uid, resourceVersion })
          sweeps.push(
            sweep.then(
              () => true,
              () => false,
            ),
          )
        },
      }
      const renewed = await renew(id, 3).catch((error: unknown) => error)
      const swept = (await Promise.all(sweeps)).includes(true)
      assert.equal(renewed instanceof Error, swept, `round ${round}: ${String(renewed)}`)
      if (swept) isCode('operation_in_progress')(renewed)
      assert.equal((await events(id)).length, swept ? 0 : 1)
    }
  })

  it('of many at once leaves the row, the store and the last event saying the same', async () => {
    for (let round = 0; round < sized(3, 40); round++) {
      const id = await carrying.make()
      const hours = [1, 2, 3, 4, 5, 6]
      const told = (await Promise.all(hours.map(ttl => renew(id, ttl)))).map(reply => bodyOf(reply).ttl_hours)
      assert.deepEqual(told, hours)
      const { spec, metadata } = await carrying.resourceOf(id)
      const seen = await events(id)
      assert.equal(metadata.generation, 7)
      assert.equal(seen.length, 6)
      assert.equal(seen.at(-1)?.metadata['ttl_hours'], spec.ttlHours)
      const row = await carrying.rowOf(id)
      assert.deepEqual([row.ttlHours, row.expiresAt?.toISOString()], [spec.ttlHours, spec.expiresAt])
    }
  })
})
