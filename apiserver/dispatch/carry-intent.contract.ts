import assert from 'node:assert/strict'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { SUPERSEDED } from '../../lib/model/operation.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import type { OpenPlace } from '../../testkit/dispatch-places.ts'
import { DispatchWorld, eventually, keyOfEnvironment } from '../../testkit/dispatch-world.ts'
import { faultyStore, type StoreCall } from '../../testkit/faulty-store.ts'
import { letGo } from '../../testkit/standin-operator.ts'
import { NAME_TAKEN, PROTECTED } from './judge-intent.ts'

const away = (): never => {
  throw new StoreError('Unavailable', 'The store is away')
}

/** What becomes of an intent, whatever stands in the store. */
export const describeCarriedIntents = (where: string, openPlace: OpenPlace): void => {
  describe(`dispatching, ${where}`, () => {
    let world: DispatchWorld
    let operator: { paused: boolean }

    beforeEach(async function () {
      // Of a run the first may have to make a Postgres, and kinds on a cluster.
      this.timeout(60_000)
      world = await DispatchWorld.create(openPlace)
      operator = world.startOperator()
    })
    afterEach(() => world.close())

    const statesOf = async (id: string) =>
      (await world.rows(id)).operations.map(({ kind, state }) => `${kind} ${state}`)

    describe('a create', () => {
      it('whose name another resource has fails and frees the id; the other one is adopted', async () => {
        await world.database.transaction(sql => sql.rows('update projects set deleted_at = now()'))
        const foreign = await world.createByHand('main')
        await world.database.transaction(sql => sql.rows('update projects set deleted_at = null'))
        const row = await world.requestCreate('main')
        const service = world.replica()
        service.wake()
        const { uid } = await world.until('main', rows => rows.uid !== null)
        assert.equal(uid, foreign.metadata.uid)
        const operation = await world.database.row(
          `select o.state, o.error, e.phase from operations o join environments e on e.id = o.environment_row where e.id = $1`,
          [row],
        )
        assert.deepEqual(operation, { state: 'failed', error: NAME_TAKEN, phase: 'deleted' })
        assert.deepEqual(
          (await world.observed()).map(({ actor, action, resource }) => ({ actor, action, resource })),
          [{ actor: 'kubernetes:kubectl', action: 'create_environment', resource: 'shop/main' }],
        )
      })

      it('waits for a predecessor that is being deleted', async () => {
        const service = world.replica()
        await world.requestCreate('main')
        service.wake()
        const first = await world.until('main', ({ phase }) => phase === 'ready')
        // The end of the row, while the resource hangs on.
        await world.request('main', 'delete')
        operator.paused = true
        service.wake()
        const deleting = await eventually(
          () => world.mustResource('main'),
          ({ metadata }) => metadata.deletionTimestamp !== undefined,
          'deleting',
        )
        await world.database.transaction(async sql => {
          await sql.rows(`update operations set state = 'succeeded' where state = 'running'`)
          await sql.rows(`update environments set phase = 'deleted', deleted_at = now()`)
        })
        await world.requestCreate('main')
        service.wake()
        await eventually(
          () =>
            world.database.row<{ error: string | null }>(
              `select last_error as error from intents where state = 'pending'`,
            ),
          seen => seen?.error === 'A resource of this name is being deleted',
          'waiting',
        )
        assert.deepEqual(await statesOf('main'), ['create_environment pending'])
        await letGo(world.kubectl, deleting)
        operator.paused = false
        const second = await world.until('main', ({ phase }) => phase === 'ready')
        assert.notEqual(second.uid, first.uid)
      })

      it('whose answer was lost makes one resource', async () => {
        let made = 0
        const store = faultyStore(world.client('svc-apiserver'), {
          after: ({ verb }) => (verb === 'create' && ++made === 1 ? away() : undefined),
        })
        await world.requestCreate('main')
        world.replica({ store })
        const { operations } = await world.until('main', ({ phase }) => phase === 'ready')
        assert.deepEqual(
          operations.map(({ state }) => state),
          ['succeeded'],
        )
        assert.equal((await world.mustResource('main')).metadata.generation, 1)
        assert.equal(made, 1, 'the second attempt sees what the first one made')
        assert.deepEqual(await world.observed(), [])
      })

      it('whose answer was lost is not resurrected when somebody deleted it before the next attempt', async () => {
        let made = 0
        const store = faultyStore(world.client('svc-apiserver'), {
          after: async ({ verb }) => {
            if (verb !== 'create') return
            made += 1
            const resource = await world.mustResource('main')
            await world.kubectl.delete(environmentType, keyOfEnvironment('main'), { uid: resource.metadata.uid })
            await letGo(world.client('svc-operator'), await world.mustResource('main'))
            away()
          },
        })
        operator.paused = true
        await world.requestCreate('main')
        world.replica({ store })
        const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
        assert.equal(operations[0]?.state, 'failed')
        assert.equal(made, 1)
        assert.equal(await world.resource(world.kubectl, 'main'), undefined)
        assert.deepEqual(
          (await world.observed()).map(({ actor, action }) => `${actor} ${action}`),
          [`${world.deleterActor('kubectl')} delete_environment`],
        )
      })

      for (const [how, takeAway] of Object.entries({
        'by a deletion': (resource: Environment) => letGo(world.client('svc-operator'), resource),
        'by its finalizer taken off by hand': ({ metadata: { uid } }: Environment) =>
          world.kubectl.patch(environmentType, keyOfEnvironment('main'), { metadata: { finalizers: [] } }, { uid }),
      }))
        it(`whose answer was lost is not resurrected when its resource was seen, and not yet its end ${how}`, async () => {
          let made = 0
          const locked = Promise.withResolvers<undefined>()
          const tried = Promise.withResolvers<undefined>()
          let lock: Promise<unknown> | undefined
          const store = faultyStore(world.client('svc-apiserver'), {
            after: async ({ verb }) => {
              if (verb !== 'create' || ++made > 1) return
              const { uid } = await world.until('main', rows => rows.uid !== null)
              // What is read is told, what is folded waits.
              lock = world.database.transaction(async sql => {
                await sql.rows('select 1 from environments for update')
                locked.resolve(undefined)
                await tried.promise
              })
              await locked.promise
              await world.kubectl.delete(environmentType, keyOfEnvironment('main'), { uid: uid! })
              await takeAway(await world.mustResource('main'))
              away()
            },
          })
          operator.paused = true
          await world.requestCreate('main')
          world.replica({ store })
          await locked.promise
          await eventually(
            () => world.database.row<{ error: string | null }>('select last_error as error from intents'),
            seen => made > 1 || seen?.error === 'The resource was deleted before its creation was recorded',
            'another attempt',
          )
          tried.resolve(undefined)
          await lock
          await world.until('main', ({ phase }) => phase === 'deleted')
          assert.equal(made, 1)
          assert.equal(await world.resource(world.kubectl, 'main'), undefined)
        })

      it('that the store refuses ends failed, says why, and frees the id', async () => {
        await world.requestCreate('main', { resources: { cpu: 'many' } })
        world.replica()
        const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
        assert.match(operations[0]?.error ?? '', /spec\.resources\.cpu/)
      })
    })

    describe('a delete', () => {
      it('cancels a create that was tried but never arrived', async () => {
        let isAway = true
        let met = 0
        const calls: StoreCall[] = []
        const meetNobody = (): never => {
          met++
          return away()
        }
        const store = faultyStore(world.client('svc-apiserver'), {
          before: call => (isAway ? meetNobody() : void calls.push(call)),
          reading: () => (isAway ? meetNobody() : undefined),
        })
        const meets = (times: number): Promise<unknown> =>
          eventually(
            async () => met,
            seen => seen >= times,
            `met nobody ${times} times`,
          )
        await world.requestCreate('main')
        // Caches are filled by a client that works; the calls go through the one that does not.
        const service = world.replica({
          store: {
            ...store,
            identity: () => world.kubectl.identity(),
            list: (type, selector) => world.kubectl.list(type, selector),
          },
        })
        await meets(1)
        assert.deepEqual(await world.database.rows('select verb, attempts from intents'), [
          { verb: 'create', attempts: 1 },
        ])
        await world.request('main', 'delete')
        // A try that began before there was a delete would go through, and rightly: the next one knows of it.
        await meets(met + 2)
        isAway = false
        service.wake()
        const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
        assert.deepEqual(
          operations.map(({ state, error }) => [state, error]),
          [
            ['failed', SUPERSEDED],
            ['succeeded', null],
          ],
        )
        assert.deepEqual(calls, [], 'the store was asked for nothing')
        assert.deepEqual(await world.observed(), [])
      })

      it('finds a create that arrived although nobody heard of it', async () => {
        let isAway = false
        const store = faultyStore(world.client('svc-apiserver'), {
          before: () => (isAway ? away() : undefined),
          reading: () => (isAway ? away() : undefined),
          after: ({ verb }) => {
            if (verb !== 'create') return
            isAway = true
            away()
          },
        })
        operator.paused = true
        await world.requestCreate('main')
        const deaf: ResourceStore = {
          ...store,
          watch: noWatch,
          list: (type, selector) => world.kubectl.list(type, selector),
        }
        const service = world.replica({ store: deaf })
        await eventually(
          () => world.resource(world.kubectl, 'main'),
          seen => seen !== undefined,
          'made',
        )
        await world.request('main', 'delete')
        isAway = false
        service.wake()
        await eventually(
          () => world.mustResource('main'),
          ({ metadata }) => metadata.deletionTimestamp !== undefined,
          'deleting',
        )
        assert.equal((await world.mustResource('main')).spec.request?.verb, 'delete')
      })

      it('supersedes a create that runs, and one that is suspended', async () => {
        const service = world.replica()
        operator.paused = true
        await world.requestCreate('running')
        await world.requestCreate('asleep')
        service.wake()
        await world.until('running', ({ operations }) => operations[0]?.state === 'running')
        await world.request('running', 'delete')
        service.wake()
        operator.paused = false
        await world.until('asleep', ({ phase }) => phase === 'ready')
        await world.request('asleep', 'suspend')
        service.wake()
        await world.until('asleep', ({ phase }) => phase === 'suspended')
        await world.request('asleep', 'delete')
        service.wake()
        for (const id of ['running', 'asleep']) await world.until(id, ({ phase }) => phase === 'deleted')
        assert.deepEqual(await statesOf('running'), ['create_environment failed', 'delete_environment succeeded'])
        assert.deepEqual(await statesOf('asleep'), [
          'create_environment succeeded',
          'suspend_environment succeeded',
          'delete_environment succeeded',
        ])
        assert.deepEqual(await world.observed(), [])
      })

      it('of a resource that somebody protected fails and leaves it as it is', async () => {
        const service = world.replica()
        await world.requestCreate('main')
        service.wake()
        await world.until('main', ({ phase }) => phase === 'ready')
        const { metadata } = await world.mustResource('main')
        await world.kubectl.patch(
          environmentType,
          keyOfEnvironment('main'),
          { spec: { deletionProtection: true } },
          { uid: metadata.uid },
        )
        await world.request('main', 'delete')
        service.wake()
        const { operations } = await world.until('main', rows => rows.operations[1]?.state === 'failed')
        assert.equal(operations[1]?.error, PROTECTED)
        const after = await world.mustResource('main')
        assert.deepEqual(
          [after.metadata.deletionTimestamp, after.spec.request?.verb, (await world.rows('main')).phase],
          [undefined, 'create', 'ready'],
        )
      })

      it('goes after an update that lifts the protection', async () => {
        const service = world.replica()
        await world.requestCreate('main', { deletionProtection: true })
        service.wake()
        await world.until('main', ({ phase }) => phase === 'ready')
        await world.requestUpdate('main', false)
        await world.request('main', 'delete')
        service.wake()
        const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
        assert.equal(operations[1]?.state, 'succeeded')
      })
    })
  })
}

/** A watch on which nothing ever comes. */
const noWatch: ResourceStore['watch'] = (_type, { signal }) => ({
  [Symbol.asyncIterator]: () => ({
    next: () =>
      new Promise(resolve => signal.addEventListener('abort', () => resolve({ done: true, value: undefined }))),
  }),
})
