import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { environmentType } from '../../crds/environment-type.ts'
import { EmbeddedResourceStore } from '../../runtime/embedded/embedded-resource-store.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld, createBody, pathOf } from '../../testkit/command-world.ts'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { sized } from '../../testkit/full.ts'
import { lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import type { CreateEnvironmentBody } from '../contract/environments.ts'
import { buildEnvironment } from '../dispatch/build-spec.ts'
import { findEnvironment } from '../store/environments.ts'
import { claimIntent, listPendingIntents } from '../store/intents.ts'
import { moveOperation } from '../store/operations.ts'
import { insertRenewal } from '../store/renewals.ts'
import { createEnvironment } from './create-environment.ts'
import { deleteEnvironment } from './delete-environment.ts'
import type { CommandDependencies } from './dependencies.ts'
import { finishStaleRenewals } from './finish-renewal.ts'
import { renewEnvironment } from './renew-environment.ts'

const HOUR_MS = 3_600_000

describe('renewEnvironment', () => {
  let world: CommandWorld
  let store: EmbeddedResourceStore
  let serial = 0

  before(async () => {
    store = new EmbeddedResourceStore({ url: await storeDatabase(), clientName: 'svc-apiserver' })
    world = await commandWorld({ store })
  })
  after(async () => {
    await world.stop()
    await store.close()
  })

  /** Carries what is pending, as the dispatcher does; creates only. */
  const carryCreate = async (id: string): Promise<void> => {
    const { database } = world.plane
    const row = await rowOf(id)
    for (const intent of await listPendingIntents(database, row.id)) {
      await claimIntent(database, intent.id)
      const operation = { id: intent.operationId ?? '', actor: world.owner.subject }
      const place = { namespace: row.namespace, name: row.resourceName, path: row }
      const { metadata } = await store.create(environmentType, buildEnvironment(place, { ...intent, operation }))
      await database.rows(`update intents set state = 'dispatched' where id = $1`, [intent.id])
      await database.rows(`update environments set uid = $2, phase = 'ready' where id = $1`, [row.id, metadata.uid])
      await moveOperation(database, operation.id, { state: 'succeeded' })
    }
  }
  const make = async (more: Partial<CreateEnvironmentBody> = {}): Promise<string> => {
    const id = `pr-${++serial}`
    const body = createBody(id, { source_environment_id: null, ...more })
    await createEnvironment(world.deps, world.call(world.owner), body)
    await carryCreate(id)
    return id
  }
  const rowOf = async (id: string) => {
    const row = await findEnvironment(world.plane.database, pathOf(id))
    assert.ok(row)
    return row
  }
  const resourceOf = async (id: string) => {
    const { namespace, resourceName: name } = await rowOf(id)
    const found = await store.get(environmentType, { namespace, name })
    assert.ok(found)
    return found
  }
  const renew = (id: string, hours: number, deps: CommandDependencies = world.deps, key?: string) =>
    renewEnvironment(deps, world.call(world.owner, { key, body: { hours } }), pathOf(id), hours)
  const renewals = async (id: string) =>
    world.plane.database.rows<{ state: string; ttl: number }>(
      `select state, ttl_hours as ttl from renewals where environment_row = $1 order by id`,
      [(await rowOf(id)).id],
    )
  const events = async (id: string) =>
    (await world.audit()).filter(
      ({ action, resourceId }) => action === 'renew_environment' && resourceId === `shop/${id}`,
    )
  /** The port, with one method in its way. */
  const storeWith = (overrides: Partial<ResourceStore>): CommandDependencies => ({
    ...world.deps,
    store: {
      identity: () => store.identity(),
      get: (type, key) => store.get(type, key),
      list: (type, selector) => store.list(type, selector),
      watch: (type, options) => store.watch(type, options),
      create: (type, resource) => store.create(type, resource),
      patch: (type, key, patch, preconditions) => store.patch(type, key, patch, preconditions),
      patchStatus: (type, key, status, preconditions) => store.patchStatus(type, key, status, preconditions),
      delete: (type, key, preconditions) => store.delete(type, key, preconditions),
      ...overrides,
    },
  })
  const away = async (): Promise<never> => {
    throw new StoreError('Unavailable', 'away')
  }

  it('has the store hold the expiry that it answers: ttl_hours from now', async () => {
    const id = await make({ ttl_hours: 1 })
    const before = Date.now()
    const record = bodyOf(await renew(id, 48))
    const { spec, metadata } = await resourceOf(id)
    assert.equal(record.ttl_hours, 48)
    assert.equal(spec.ttlHours, 48)
    assert.equal(record.expires_at_epoch_seconds, Math.floor(Date.parse(spec.expiresAt ?? '') / 1000))
    assert.ok(Math.abs(Date.parse(spec.expiresAt ?? '') - before - 48 * HOUR_MS) < 60_000)
    assert.equal(metadata.annotations['svc.internal/actor'], world.owner.subject)
    assert.equal((await rowOf(id)).expiresAt?.toISOString(), spec.expiresAt)
    assert.deepEqual(await renewals(id), [{ state: 'applied', ttl: 48 }])
    const [event] = await events(id)
    assert.deepEqual([event?.actor, event?.metadata['ttl_hours']], [world.owner.subject, 48])
    assert.equal(event?.metadata['expires_at'], spec.expiresAt)
    assert.equal(event?.metadata['client_ip'], '192.0.2.7')
  })

  it('gives an expiry to a preview that had none', async () => {
    const deps = { ...world.deps, settings: { ...world.deps.settings, previewDefaultTtlHours: 0 } }
    const id = `pr-${++serial}`
    await createEnvironment(deps, world.call(world.owner), createBody(id))
    await carryCreate(id)
    assert.equal((await resourceOf(id)).spec.expiresAt, undefined)
    assert.ok(bodyOf(await renew(id, 2)).expires_at_epoch_seconds)
  })

  it('answers a repeated key with the same bytes and renews once', async () => {
    const id = await make()
    const key = randomUUID()
    const first = await renew(id, 5, world.deps, key)
    const again = await renew(id, 5, world.deps, key)
    assert.deepEqual(again.body, first.body)
    assert.equal(again.headers?.['Idempotency-Replayed'], 'true')
    assert.deepEqual([(await renewals(id)).length, (await events(id)).length], [1, 1])
    await assert.rejects(renew(id, 6, world.deps, key), isCode('idempotency_key_reused'))
  })

  it('refuses what does not expire, has expired, or is going', async () => {
    await assert.rejects(renew(await make({ kind: 'staging' }), 1), isCode('not_a_preview'))
    await assert.rejects(renew('nowhere', 1), isCode('environment_not_found'))

    const deleting = await make()
    await deleteEnvironment(world.deps, world.call(world.owner), pathOf(deleting))
    await assert.rejects(renew(deleting, 1), isCode('operation_in_progress'))

    const past = { expiresAt: new Date(Date.now() - 1000).toISOString() }
    const expired = await make()
    await world.plane.database.rows('update environments set expires_at = $2 where id = $1', [
      (await rowOf(expired)).id,
      past.expiresAt,
    ])
    await assert.rejects(renew(expired, 1), isCode('environment_expired'))

    // Changed behind the API's back: the rows do not know yet, the store decides.
    const outside = await make()
    const { metadata } = await resourceOf(outside)
    await store.patch(environmentType, metadata, { spec: past }, { uid: metadata.uid })
    await assert.rejects(renew(outside, 1), isCode('environment_expired'))

    const gone = await make()
    const { metadata: dying } = await resourceOf(gone)
    await store.delete(environmentType, dying, { uid: dying.uid })
    await assert.rejects(renew(gone, 1), isCode('operation_in_progress'))
    for (const id of [deleting, expired, outside, gone])
      assert.deepEqual([await renewals(id), await events(id)], [[], []])
  })

  it('waits for what is still on its way to the store, and says so when it takes too long', async () => {
    const id = `pr-${++serial}`
    await createEnvironment(world.deps, world.call(world.owner), createBody(id))
    await assert.rejects(renew(id, 1), isCode('store_unavailable'))
    const renewing = renew(id, 1)
    await carryCreate(id)
    assert.equal(bodyOf(await renewing).ttl_hours, 1)
  })

  it('looks again when the resource changes in between', async () => {
    const id = await make()
    let disturbances = 3
    const deps = storeWith({
      patch: async (type, key, patch, preconditions) => {
        if (disturbances-- > 0)
          await store.patch(
            type,
            key,
            { metadata: { annotations: { noise: String(disturbances) } } },
            { uid: preconditions.uid },
          )
        return store.patch(type, key, patch, preconditions)
      },
    })
    await renew(id, 9, deps)
    assert.deepEqual(
      (await renewals(id)).map(({ state }) => state),
      ['abandoned', 'abandoned', 'abandoned', 'applied'],
    )
    assert.equal((await events(id)).length, 1)
  })

  it('loses to a sweep that came first, and makes one that comes later fail: never both', async () => {
    for (let round = 0; round < sized(5, 60); round++) {
      const id = await make()
      const { metadata } = await resourceOf(id)
      const { uid, resourceVersion } = metadata
      const [renewed, swept] = await Promise.allSettled([
        renew(id, 3),
        store.delete(environmentType, metadata, { uid, resourceVersion }),
      ])
      assert.notEqual(renewed.status, swept.status, `round ${round}`)
      if (renewed.status === 'rejected') isCode('operation_in_progress')(renewed.reason)
      assert.equal((await events(id)).length, renewed.status === 'fulfilled' ? 1 : 0)
    }
  })

  it('of many at once leaves the row, the store and the last event saying the same', async () => {
    for (let round = 0; round < sized(3, 40); round++) {
      const id = await make()
      const hours = [1, 2, 3, 4, 5, 6]
      const results = await Promise.allSettled(hours.map(ttl => renew(id, ttl)))
      const told = results.flatMap(result => (result.status === 'fulfilled' ? [bodyOf(result.value).ttl_hours] : []))
      for (const result of results) if (result.status === 'rejected') isCode('write_conflict')(result.reason)
      const applied = (await renewals(id)).filter(({ state }) => state === 'applied').map(({ ttl }) => ttl)
      assert.deepEqual(new Set(applied), new Set(told))
      const { spec } = await resourceOf(id)
      assert.equal(applied.at(-1), spec.ttlHours)
      assert.equal((await events(id)).length, told.length)
    }
  })

  describe('when the store is away', () => {
    it('answers store_unavailable and leaves nothing when it was away from the start', async () => {
      const id = await make()
      await assert.rejects(renew(id, 1, storeWith({ get: away })), isCode('store_unavailable'))
      assert.deepEqual([await renewals(id), await events(id)], [[], []])
    })

    it('settles later whether a patch arrived whose answer did not', async () => {
      for (const arrives of [true, false]) {
        const id = await make()
        const deps = storeWith({
          patch: async (type, key, patch, preconditions) => {
            if (arrives) await store.patch(type, key, patch, preconditions)
            return away()
          },
        })
        await assert.rejects(renew(id, 7, deps), isCode('store_unavailable'))
        assert.deepEqual(await renewals(id), [{ state: 'pending', ttl: 7 }])
        await finishStaleRenewals({ database: world.plane.database, store })
        assert.equal((await renewals(id))[0]?.state, 'pending', 'somebody may still be working on it')
        await Promise.all(
          [1, 2, 3].map(() => finishStaleRenewals({ database: world.plane.database, store, olderThanSeconds: 0 })),
        )
        assert.equal((await renewals(id))[0]?.state, arrives ? 'applied' : 'abandoned')
        assert.equal((await events(id)).length, arrives ? 1 : 0)
        if (arrives) assert.equal((await rowOf(id)).ttlHours, 7)
      }
    })
  })

  it('settles one whose patch was overtaken before anybody settled it', async () => {
    const id = await make()
    const deps = storeWith({
      patch: async (type, key, patch, preconditions) => {
        await store.patch(type, key, patch, preconditions)
        return away()
      },
    })
    await assert.rejects(renew(id, 7, deps), isCode('store_unavailable'))
    await renew(id, 8)
    assert.deepEqual(await renewals(id), [
      { state: 'applied', ttl: 7 },
      { state: 'applied', ttl: 8 },
    ])
    assert.deepEqual(
      (await events(id)).map(({ metadata }) => metadata['ttl_hours']),
      [7, 8],
    )
    assert.equal((await rowOf(id)).ttlHours, 8)
  })

  it('records a renewal as applied although it was given up, when its patch arrived after all', async () => {
    const id = await make()
    const deps = storeWith({
      patch: async (type, key, patch, preconditions) => {
        await finishStaleRenewals({ database: world.plane.database, store, olderThanSeconds: 0 })
        return store.patch(type, key, patch, preconditions)
      },
    })
    await renew(id, 4, deps)
    assert.deepEqual(await renewals(id), [{ state: 'applied', ttl: 4 }])
    assert.equal((await events(id)).length, 1)
  })

  it('does not undo what the projector folded in between', async () => {
    const id = await make()
    const later = new Date(Date.now() + 99 * HOUR_MS)
    const deps = storeWith({
      patch: async (type, key, patch, preconditions) => {
        const patched = await store.patch(type, key, patch, preconditions)
        await world.plane.database.rows(
          'update environments set observed_generation = $2, ttl_hours = 99, expires_at = $3 where id = $1',
          [(await rowOf(id)).id, patched.metadata.generation + 1, later],
        )
        return patched
      },
    })
    assert.equal(bodyOf(await renew(id, 2, deps)).ttl_hours, 2)
    assert.deepEqual([(await rowOf(id)).ttlHours, (await rowOf(id)).expiresAt], [99, later])
  })

  it('leaves one event when the answer to its last commit is lost', async () => {
    const link = await lossyLink((await testCluster()).socketFolder)
    const process = world.secondProcess({ url: `postgres://svc_api@127.0.0.1:${link.port}/${world.plane.name}` })
    const deps = {
      ...process,
      store: storeWith({
        patch: async (type, key, patch, preconditions) => {
          const patched = await store.patch(type, key, patch, preconditions)
          link.loseNextCommit()
          return patched
        },
      }).store,
    }
    const id = await make()
    const key = randomUUID()
    const reply = await renew(id, 3, deps, key)
    assert.equal(link.lost, 1)
    assert.equal((await events(id)).length, 1)
    assert.deepEqual((await renew(id, 3, world.deps, key)).body, reply.body)
    link.stop()
  })

  it('abandons a renewal whose environment was deleted meanwhile', async () => {
    const id = await make()
    const row = await rowOf(id)
    await insertRenewal(world.plane.database, {
      environmentRow: row.id,
      ttlHours: 1,
      actor: 'user:x',
      requestId: 'r',
      metadata: {},
    })
    const { metadata } = await resourceOf(id)
    await store.patch(environmentType, metadata, { metadata: { finalizers: [] } }, { uid: metadata.uid })
    await store.delete(environmentType, metadata, { uid: metadata.uid })
    await finishStaleRenewals({ database: world.plane.database, store, olderThanSeconds: 0 })
    assert.deepEqual(await renewals(id), [{ state: 'abandoned', ttl: 1 }])
  })
})
