import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_GONE, OVERTAKEN } from '../../lib/model/operation.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { DispatchWorld, eventually, keyOfEnvironment, USER } from '../../testkit/dispatch-world.ts'
import { faultyStore, type StoreCall } from '../../testkit/faulty-store.ts'
import { sized } from '../../testkit/full.ts'

const away = (): never => {
  throw new StoreError('Unavailable', 'The store is away')
}

describe('the dispatcher', () => {
  let world: DispatchWorld
  let operator: { paused: boolean }

  beforeEach(async () => {
    world = await DispatchWorld.create()
    operator = world.startOperator()
  })
  afterEach(() => world.close())

  it('ends what is asked of an environment that is gone, and never makes it again', async () => {
    const service = world.replica()
    await world.requestCreate('main')
    service.wake()
    await world.until('main', ({ phase }) => phase === 'ready')
    await service.stop()
    const { metadata } = await world.mustResource('main')
    await world.kubectl.delete(environmentType, keyOfEnvironment('main'), { uid: metadata.uid })
    await world.gone('main')
    await world.createByHand('main')
    await world.request('main', 'suspend')
    world.replica()
    await world.until('main', ({ uid }) => uid !== null && uid !== metadata.uid)
    const ends = await world.database.rows(
      `select o.kind, o.state, o.error, o.actor from operations o join environments e on e.id = o.environment_row
        where e.uid = $1 order by o.seq`,
      [metadata.uid],
    )
    assert.deepEqual(ends, [
      { kind: 'create_environment', state: 'succeeded', error: null, actor: USER },
      { kind: 'suspend_environment', state: 'failed', error: ENVIRONMENT_GONE, actor: USER },
      { kind: 'delete_environment', state: 'succeeded', error: null, actor: 'kubernetes:kubectl' },
    ])
    assert.equal((await world.mustResource('main')).spec.suspended, undefined)
  })

  it('ends a suspend that comes after somebody began the deletion as overtaken', async () => {
    const service = world.replica()
    await world.requestCreate('main')
    service.wake()
    await world.until('main', ({ phase }) => phase === 'ready')
    operator.paused = true
    const { metadata } = await world.mustResource('main')
    await world.kubectl.delete(environmentType, keyOfEnvironment('main'), { uid: metadata.uid })
    await world.request('main', 'suspend')
    service.wake()
    const { operations } = await world.until('main', rows => rows.operations[1]?.state === 'failed')
    assert.equal(operations[1]?.error, OVERTAKEN)
  })

  it('ends an update that a rule refuses as failed, and goes on with what follows', async () => {
    const service = world.replica()
    const row = await world.requestCreate('main', { resources: { storage: '5Gi' } })
    await world.database.transaction(async sql => {
      await sql.rows(
        `with n as (update environments set seq = seq + 1 where id = $1 returning id, seq)
         insert into intents (environment_row, seq, request_id, verb, payload)
         select id, seq, 'req', 'update', '{"resources": {"storage": "1Gi"}}' from n`,
        [row],
      )
    })
    service.wake()
    await world.until('main', ({ phase }) => phase === 'ready')
    await world.request('main', 'suspend')
    service.wake()
    await world.until('main', ({ phase }) => phase === 'suspended')
    const intents = await world.database.rows('select verb, state from intents order by seq')
    assert.deepEqual(intents, [
      { verb: 'create', state: 'dispatched' },
      { verb: 'update', state: 'failed' },
      { verb: 'suspend', state: 'dispatched' },
    ])
    assert.equal((await world.mustResource('main')).spec.resources?.storage, '5Gi')
  })

  describe('that slept through the loss of its lease', () => {
    /** A replica whose next call of a verb waits; answers when it does, and how to let it go on. */
    const sleeper = (verb: StoreCall['verb']) => {
      const asleep = Promise.withResolvers<undefined>()
      const awake = Promise.withResolvers<undefined>()
      const tried = Promise.withResolvers<undefined>()
      const deleted = Promise.withResolvers<undefined>()
      let sleeps = true
      const plain = world.client('svc-apiserver')
      const late: ResourceStore = {
        ...faultyStore(plain, {}),
        // Says when the call that slept has had its answer, whichever.
        patch: (...call) => plain.patch(...call).finally(() => tried.resolve(undefined)),
      }
      const store = faultyStore(late, {
        before: async call => {
          if (!sleeps || call.verb !== verb || call.kind !== 'Environment') return
          sleeps = false
          asleep.resolve(undefined)
          await awake.promise
        },
        after: call => {
          if (call.verb === 'delete') deleted.resolve(undefined)
        },
      })
      // It hears of its loss long after.
      world.replica({ store, config: { leaseRenewEveryMs: 60_000, leaseTtlMs: 120_000 } })
      return {
        asleep: asleep.promise,
        wakeUp: () => awake.resolve(undefined),
        tried: tried.promise,
        deleted: deleted.promise,
      }
    }
    const successor = async () => {
      await world.database.transaction(sql => sql.rows(`update leases set expires_at = '-infinity'`))
      const service = world.replica({ config: { leasePollEveryMs: 10 } })
      await eventually(
        async () => service.active,
        active => active,
        'taken over',
      )
      return service
    }

    it('changes nothing with an update that others have left behind', async () => {
      const slow = sleeper('patch')
      await world.requestCreate('main')
      await world.until('main', ({ phase }) => phase === 'ready')
      await world.requestUpdate('main', true)
      await slow.asleep
      const service = await successor()
      await world.requestUpdate('main', false)
      service.wake()
      await eventually(
        () => world.mustResource('main'),
        ({ metadata, spec }) => metadata.generation === 3 && spec.deletionProtection === false,
        'carried',
      )
      slow.wakeUp()
      await slow.tried
      const { metadata, spec } = await world.mustResource('main')
      assert.deepEqual([metadata.generation, spec.deletionProtection], [3, false])
    })

    it('takes back what it creates for an environment that was deleted meanwhile', async () => {
      const slow = sleeper('create')
      await world.requestCreate('main')
      await slow.asleep
      const service = await successor()
      await world.until('main', ({ phase }) => phase === 'ready')
      await world.request('main', 'delete')
      service.wake()
      await world.until('main', ({ phase }) => phase === 'deleted')
      await world.gone('main')
      await service.stop()
      slow.wakeUp()
      await slow.deleted
      await world.gone('main')
      assert.equal((await world.rows('main')).phase, 'deleted')
    })
  })

  it('keeps what it cannot carry while the store is away; a passed deadline ends the operation, not the work', async () => {
    let isAway = true
    const store = faultyStore(world.client('svc-apiserver'), { before: () => (isAway ? away() : undefined) })
    await world.requestCreate('main')
    await world.database.transaction(sql => sql.rows(`update operations set deadline_at = now() - interval '1 s'`))
    const service = world.replica({ store })
    const failed = await world.until('main', ({ operations }) => operations[0]?.state === 'failed')
    assert.match(failed.operations[0]?.error ?? '', /^deadline_exceeded: .*may still become ready/)
    isAway = false
    service.wake()
    const ready = await world.until('main', ({ phase }) => phase === 'ready')
    assert.deepEqual(ready.operations, failed.operations)
  })

  it('loses no field to others who write the same resource all the time', async () => {
    const service = world.replica()
    const row = await world.requestCreate('main')
    service.wake(row)
    await world.until('main', ({ phase }) => phase === 'ready')
    const { metadata } = await world.mustResource('main')
    let writes = 0
    const over = new AbortController()
    const storm = (async () => {
      while (!over.signal.aborted) {
        await world.kubectl.patch(
          environmentType,
          keyOfEnvironment('main'),
          { metadata: { annotations: { storm: String(++writes) } } },
          { uid: metadata.uid },
        )
        await sleep(10)
      }
    })()
    for (let round = 0; round < sized(3, 20); round++) {
      for (const [verb, phase] of [
        ['suspend', 'suspended'],
        ['resume', 'ready'],
      ] as const) {
        await world.requestUpdate('main', verb === 'suspend')
        await world.request('main', verb)
        service.wake(row)
        await world.until('main', rows => rows.phase === phase && rows.operations.at(-1)?.state === 'succeeded')
      }
    }
    over.abort()
    await storm
    const { metadata: after, spec } = await world.mustResource('main')
    assert.equal(after.annotations['storm'], String(writes))
    assert.deepEqual([spec.deletionProtection, spec.suspended], [false, false])
    assert.deepEqual(await world.observed(), [])
  })

  it('carries many environments at once, but never two intents of one', async () => {
    const count = 40
    const inFlight = new Map<string, number>()
    let most = 0
    const store = faultyStore(world.client('svc-apiserver'), {
      before: ({ kind, name }) => {
        if (kind !== 'Environment') return
        inFlight.set(name, (inFlight.get(name) ?? 0) + 1)
        most = Math.max(most, inFlight.size)
        assert.equal(inFlight.get(name), 1)
      },
      after: ({ name }) => void inFlight.delete(name),
    })
    const ids = Array.from({ length: count }, (_, index) => `pr-${index}`)
    for (const id of ids) await world.requestCreate(id)
    const service = world.replica({ store })
    service.wake()
    for (const id of ids) await world.until(id, ({ phase }) => phase === 'ready')
    await Promise.all(
      ids.map(async id => {
        await world.requestUpdate(id, true)
        await world.requestUpdate(id, false)
        await world.request(id, 'suspend')
      }),
    )
    service.wake()
    for (const id of ids) await world.until(id, ({ phase }) => phase === 'suspended')
    assert.ok(most > 1, `at most ${most} at once`)
    const carried = await world.database.rows<{ inOrder: boolean }>(
      `select bool_and(dispatched_at >= before) as "inOrder" from (select dispatched_at,
         lag(dispatched_at, 1, '-infinity') over (partition by environment_row order by seq) as before from intents) i`,
    )
    assert.deepEqual(carried, [{ inOrder: true }])
    assert.deepEqual(await world.observed(), [])
  })
})
