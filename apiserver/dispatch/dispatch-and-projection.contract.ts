import assert from 'node:assert/strict'
import pg from 'pg'
import { Registry } from 'prom-client'
import { environmentType } from '../../crds/environment-type.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import type { OpenPlace } from '../../testkit/dispatch-places.ts'
import { DispatchWorld, eventually, keyOfEnvironment, pathOf, USER } from '../../testkit/dispatch-world.ts'
import { faultyStore } from '../../testkit/faulty-store.ts'
import { sized } from '../../testkit/full.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { startStandinOperator } from '../../testkit/standin-operator.ts'

/** Dispatch and projection as one service, wherever resources are. */
export const describeDispatchAndProjection = (where: string, openPlace: OpenPlace): void => {
  describe(`dispatch and projection, ${where}`, () => {
    let world: DispatchWorld
    let operator: ResourceStore

    beforeEach(async () => {
      world = await DispatchWorld.create(openPlace)
      operator = world.client('svc-operator')
      const standin = startStandinOperator(operator)
      world.onClose(() => standin.stop())
    })
    afterEach(() => world.close())

    it('carries a life from create to delete, each operation once, and writes nothing that nobody did', async () => {
      const service = world.replica()
      await service.ready()
      const row = await world.requestCreate('pr-1')
      service.wake(row)
      const created = await world.until('pr-1', ({ phase }) => phase === 'ready')
      assert.deepEqual(created.operations, [
        {
          kind: 'create_environment',
          state: 'succeeded',
          actor: USER,
          error: null,
          result: { environment_id: 'pr-1', phase: 'ready', postgres_major: 17 },
        },
      ])
      await world.request('pr-1', 'suspend')
      service.wake(row)
      await world.until(
        'pr-1',
        ({ phase, operations }) => phase === 'suspended' && operations[1]?.state === 'succeeded',
      )
      await world.request('pr-1', 'resume')
      service.wake(row)
      await world.until('pr-1', ({ phase, operations }) => phase === 'ready' && operations[2]?.state === 'succeeded')
      await world.request('pr-1', 'rotate')
      service.wake(row)
      await world.until('pr-1', ({ operations }) => operations[3]?.state === 'succeeded')
      await world.requestUpdate('pr-1', true)
      await world.requestUpdate('pr-1', false)
      await world.request('pr-1', 'delete')
      service.wake(row)
      const deleted = await world.until('pr-1', ({ phase }) => phase === 'deleted')
      assert.deepEqual(
        deleted.operations.map(({ kind, state }) => `${kind} ${state}`),
        [
          ...['create_environment', 'suspend_environment', 'resume_environment'],
          ...['rotate_credentials', 'delete_environment'],
        ].map(kind => `${kind} succeeded`),
      )
      assert.deepEqual(deleted.operations[4]?.result, { environment_id: 'pr-1', phase: 'deleted', retained: false })
      assert.deepEqual(
        (await world.audit()).map(({ actor, action }) => `${actor} ${action}`),
        [`${USER} update_environment`, `${USER} update_environment`],
      )
      assert.equal(await world.resource(operator, 'pr-1'), undefined)
    })

    it('is woken by a replica that does not work itself, long before the poll', async () => {
      const rarely = { pollEveryMs: 600_000, leasePollEveryMs: 50 }
      const working = world.replica({ config: rarely })
      await working.ready()
      const standby = world.replica({ config: rarely })
      await standby.ready()
      assert.deepEqual([working.active, standby.active], [true, false])
      for (let n = 0; n < sized(3, 20); n++) {
        const row = await world.requestCreate(`pr-${n}`)
        standby.wake(row)
        await world.until(`pr-${n}`, ({ phase }) => phase === 'ready')
      }
    })

    it('goes on elsewhere when the working replica stops', async () => {
      const one = world.replica({ config: { leasePollEveryMs: 600_000 } })
      await one.ready()
      const two = world.replica({ config: { leasePollEveryMs: 600_000 } })
      await two.ready()
      await one.stop()
      await eventually(
        async () => two.active,
        active => active,
        'the other one works',
      )
      await world.requestCreate('main')
      two.wake()
      await world.until('main', ({ phase }) => phase === 'ready')
    })

    it('outlives a database that goes away: what happened meanwhile is caught up with', async () => {
      const service = world.replica()
      await world.requestCreate('main')
      await world.requestCreate('gone')
      service.wake()
      for (const id of ['main', 'gone']) await world.until(id, ({ phase }) => phase === 'ready')
      const cluster = await testCluster()
      const admin = new pg.Client({ connectionString: cluster.url('postgres') })
      await admin.connect()
      world.onClose(() => admin.end())
      for (let outage = 0; outage < sized(1, 4); outage++) {
        await world.request('main', outage % 2 === 0 ? 'suspend' : 'resume')
        await admin.query(`alter database ${world.controlPlane.name} with allow_connections false`)
        await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
          world.controlPlane.name,
        ])
        service.wake()
        if (outage === 0) {
          const resource = await world.resource(operator, 'gone')
          assert.ok(resource)
          await operator.delete(environmentType, keyOfEnvironment('gone'), { uid: resource.metadata.uid })
          await eventually(
            () => world.resource(operator, 'gone'),
            seen => seen === undefined,
            'gone',
          )
        }
        await admin.query(`alter database ${world.controlPlane.name} with allow_connections true`)
        const phase = outage % 2 === 0 ? 'suspended' : 'ready'
        await world.until('main', rows => rows.phase === phase && rows.operations.at(-1)?.state === 'succeeded')
      }
      await world.until('gone', ({ phase }) => phase === 'deleted')
      assert.deepEqual(
        (await world.audit()).map(({ actor, action, resource }) => `${actor} ${action} ${resource}`),
        [`${world.deleterActor('svc-operator')} delete_environment shop/gone`],
      )
    })

    it('carries a change whose caller is gone, and leaves its answer, its row and one event', async () => {
      await world.requestCreate('pr-1', { kind: 'preview', expiresAt: '2027-01-01T00:00:00Z' })
      const first = world.replica()
      first.wake()
      await world.until('pr-1', ({ phase }) => phase === 'ready')
      await first.stop()
      await world.requestChange('pr-1', { ttlHours: 48, expiresAt: '2027-02-01T00:00:00.000Z' })
      await world.requestChange('pr-1', { deletionProtection: true })
      world.replica()
      const answers = await eventually(
        () =>
          world.database.rows<{ answer: Buffer | null }>(
            `select answer from intents where verb = 'update' order by id`,
          ),
        seen => seen.every(({ answer }) => answer !== null),
        'answered',
      )
      const told = answers.map(({ answer }) => JSON.parse(String(answer)) as Record<string, unknown>)
      assert.deepEqual(
        told.map(body => [body['ttl_hours'], body['deletion_protection']]),
        [
          [48, false],
          [48, true],
        ],
      )
      const row = await world.database.row(
        'select ttl_hours as hours, expires_at as expiry, deletion_protection as kept from environments',
      )
      assert.deepEqual(row, { hours: 48, expiry: new Date('2027-02-01T00:00:00Z'), kept: true })
      const resource = await world.resource(operator, 'pr-1')
      assert.equal(resource?.spec.expiresAt, '2027-02-01T00:00:00.000Z')
      assert.equal(resource.metadata.annotations[ANNOTATIONS.actor], USER)
      assert.deepEqual(
        (await world.audit()).map(({ actor, action }) => `${actor} ${action}`),
        [`${USER} renew_environment`, `${USER} update_environment`],
      )
    })

    it('is back with a store that was away for long as soon as it was told to look again', async () => {
      let outages = 0
      const store = faultyStore(world.client('svc-apiserver'), {
        reading: () => {
          // Twelve waits that double from 0.8 s would be minutes.
          if (++outages <= 24) throw new StoreError('Unavailable', 'away')
        },
      })
      await world.replica({ store, config: { reconnect: { baseMs: 1, capMs: 5 } } }).ready()
      assert.ok(outages > 24)
    })

    it('tells what waits, who works, how old the news was and what came from outside', async () => {
      const registry = new Registry()
      const service = world.replica({ registry })
      await service.ready()
      await operator.create(environmentType, {
        ...keyOfEnvironment('main'),
        spec: { ...pathOf('main'), kind: 'staging' },
      })
      await world.until('main', ({ phase }) => phase === 'ready')
      const text = await registry.metrics()
      for (const line of [
        /^svc_intents_pending 0$/m,
        /^svc_intents_oldest_age_seconds 0$/m,
        /^svc_lease_holder 1$/m,
        /^svc_external_changes_total\{kind="created"\} 1$/m,
        /^svc_fold_lag_seconds_count [1-9]/m,
        /^controller_runtime_reconcile_total\{controller="environment-projector",result="success"\} [1-9]/m,
        /^controller_runtime_max_concurrent_reconciles\{controller="deletion-record-projector"\} 8$/m,
        /^workqueue_depth\{name="dispatcher",controller="dispatcher"\} 0$/m,
        /^reflector_lists_total\{name="apiserver\/Environment",reason="start"\} 1$/m,
        /^reflector_lists_total\{name="apiserver\/DeletionRecord",reason="start"\} 1$/m,
      ])
        assert.match(text, line)
      await service.stop()
      assert.match(await registry.metrics(), /^svc_lease_holder 0$/m)
    })
  })
}
