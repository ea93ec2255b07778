import assert from 'node:assert/strict'
import { Registry } from 'prom-client'
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { OVERTAKEN } from '../../lib/model/operation.ts'
import { ANOTHER_NAMESPACE, type OpenPlace } from '../../testkit/dispatch-places.ts'
import { DispatchWorld, eventually, keyOfEnvironment, NAMESPACE, pathOf, USER } from '../../testkit/dispatch-world.ts'
import { leaveRecord } from '../../testkit/standin-operator.ts'

/** What the projector makes of what it sees. */
export const describeProjector = (where: string, openPlace: OpenPlace): void => {
  describe(`the projector, ${where}`, () => {
    let world: DispatchWorld
    let operator: { paused: boolean }

    beforeEach(async () => {
      world = await DispatchWorld.create(openPlace)
      operator = world.startOperator()
    })
    afterEach(() => world.close())

    const ready = async (id: string, spec: Partial<EnvironmentSpec> = {}) => {
      await world.requestCreate(id, spec)
      const service = world.replica()
      service.wake()
      await world.until(id, ({ phase }) => phase === 'ready')
      return service
    }
    const edit = async (id: string, spec: Readonly<Record<string, unknown>>) => {
      const { metadata } = await world.mustResource(id)
      return world.kubectl.patch(environmentType, keyOfEnvironment(id), { spec }, { uid: metadata.uid })
    }
    const deleteByHand = async (id: string) => {
      const { metadata } = await world.mustResource(id)
      await world.kubectl.delete(environmentType, keyOfEnvironment(id), { uid: metadata.uid })
    }
    const brief = async () =>
      (await world.audit()).map(({ actor, action, resource }) => `${actor} ${action} ${resource}`)
    const operationsOf = async (id: string) =>
      (await world.rows(id)).operations.map(({ kind, state, actor }) => `${kind} ${state} ${actor}`)

    it('records a change from outside once, with fields, generations and client, and takes over what it changes', async () => {
      const service = await ready('main')
      await edit('main', { suspended: true, deletionProtection: true })
      await world.until('main', ({ phase }) => phase === 'suspended')
      const [event, ...others] = await world.audit()
      const { uid } = await world.rows('main')
      assert.deepEqual(event, {
        actor: 'kubernetes:kubectl',
        action: 'external_change',
        resource: 'shop/main',
        metadata: {
          generation: { from: 1, to: 2 },
          fields: ['deletionProtection', 'suspended'],
          observed: true,
          uid,
        },
      })
      assert.deepEqual(others, [])
      const row = await world.database.row('select deletion_protection as protected from environments')
      assert.deepEqual(row, { protected: true })
      await service.stop()
      await world.replica().ready()
      assert.equal((await world.audit()).length, 1)
    })

    it('ends an operation that a change from outside makes unreachable', async () => {
      const service = await ready('main')
      operator.paused = true
      await world.request('main', 'suspend')
      service.wake()
      await eventually(
        () => world.mustResource('main'),
        ({ spec }) => spec.suspended === true,
        'suspending',
      )
      await edit('main', { suspended: false })
      const { operations } = await world.until('main', rows => rows.operations[1]?.state === 'failed')
      assert.equal(operations[1]?.error, OVERTAKEN)
      operator.paused = false
      await eventually(brief, seen => seen.length === 1, 'recorded')
      assert.deepEqual(await brief(), ['kubernetes:kubectl external_change shop/main'])
    })

    it('tells our own change and one from outside apart that it sees at once', async () => {
      const service = await ready('main')
      await service.stop()
      await world.request('main', 'suspend')
      await world.requestUpdate('main', true)
      await edit('main', { image: 'postgres:17.10' })
      const again = world.replica()
      await again.ready()
      again.wake()
      await world.until('main', ({ phase }) => phase === 'suspended')
      const events = await world.observed()
      assert.deepEqual(
        events.map(({ action, metadata }) => [action, metadata['fields']]),
        [['external_change', ['image']]],
      )
    })

    for (const isDown of [false, true]) {
      const when = isDown ? 'while nobody looked' : 'while we look'
      it(`records what expiry deleted ${when} as an operation and an event of system:ttl`, async () => {
        const service = await ready('pr-1', {
          kind: 'preview',
          expiresAt: '2026-01-01T00:00:00Z',
          deletionPolicy: 'Retain',
        })
        if (isDown) await service.stop()
        const { metadata } = await world.mustResource('pr-1')
        const expired = {
          type: 'Expired',
          status: 'True',
          reason: 'TimeToLiveEnded',
          message: '',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-01T00:01:00Z',
        } as const
        const sweeper = world.client('svc-operator')
        await sweeper.patchStatus(
          environmentType,
          keyOfEnvironment('pr-1'),
          { conditions: [expired] },
          { uid: metadata.uid },
        )
        await sweeper.delete(environmentType, keyOfEnvironment('pr-1'), { uid: metadata.uid })
        await world.gone('pr-1')
        if (isDown) await world.replica().ready()
        const { operations } = await world.until('pr-1', ({ phase }) => phase === 'deleted')
        assert.deepEqual(await operationsOf('pr-1'), [
          `create_environment succeeded ${USER}`,
          'delete_environment succeeded system:ttl',
        ])
        assert.deepEqual(operations[1]?.result, {
          environment_id: 'pr-1',
          phase: 'deleted',
          retained: true,
          retained_at: `/trash/${metadata.uid}`,
        })
        assert.deepEqual(await brief(), ['system:ttl delete_environment shop/pr-1'])
        const [event] = await world.audit()
        const swept = await world.database.row<{ id: string }>(`select id from operations where actor = 'system:ttl'`)
        assert.ok(swept)
        assert.equal(event?.metadata['operation_id'], swept.id)
        await eventually(
          async () => (await world.kubectl.list(environmentType)).items.length,
          left => left === 0,
          'nothing left',
        )
      })

      it(`folds what kubectl deleted ${when} as gone, once`, async () => {
        const service = await ready('main')
        if (isDown) await service.stop()
        await deleteByHand('main')
        await world.gone('main')
        if (isDown) await world.replica().ready()
        await world.until('main', ({ phase }) => phase === 'deleted')
        assert.deepEqual(await operationsOf('main'), [
          `create_environment succeeded ${USER}`,
          `delete_environment succeeded ${world.deleterActor('kubectl')}`,
        ])
        assert.deepEqual(await brief(), [`${world.deleterActor('kubectl')} delete_environment shop/main`])
      })

      it(`folds what vanished ${when} without a record as gone, by nobody knows whom`, async () => {
        const service = await ready('main')
        operator.paused = true
        if (isDown) await service.stop()
        const { metadata } = await world.mustResource('main')
        const finalizers = metadata.finalizers.filter(name => name !== ENVIRONMENT_FINALIZER)
        await world.kubectl.patch(
          environmentType,
          keyOfEnvironment('main'),
          { metadata: { finalizers } },
          { uid: metadata.uid },
        )
        await deleteByHand('main')
        assert.equal(await world.resource(world.kubectl, 'main'), undefined)
        if (isDown) await world.replica().ready()
        const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
        assert.deepEqual(
          operations[1]?.result,
          { environment_id: 'main', phase: 'deleted' },
          'nothing is said of the data',
        )
        assert.deepEqual(await brief(), ['kubernetes:unknown delete_environment shop/main'])
      })
    }

    it('says where the data of a deletion was kept, and removes the record', async () => {
      const service = await ready('main', { deletionPolicy: 'Retain' })
      const { uid } = await world.rows('main')
      await world.request('main', 'delete')
      service.wake()
      const { operations } = await world.until('main', ({ phase }) => phase === 'deleted')
      assert.deepEqual(operations[1]?.result, {
        environment_id: 'main',
        phase: 'deleted',
        retained: true,
        retained_at: `/trash/${uid}`,
      })
      await eventually(
        () => world.deletionRecords(world.kubectl),
        records => records.length === 0,
        'record removed',
      )
      assert.deepEqual(await world.audit(), [])
    })

    it('calls an environment deleted once the operator let go of it, whoever else still holds it', async () => {
      const service = await ready('main')
      operator.paused = true
      const { metadata } = await world.mustResource('main')
      const finalizers = [...metadata.finalizers, 'example.com/hold']
      await world.kubectl.patch(environmentType, keyOfEnvironment('main'), { metadata: { finalizers } }, metadata)
      await world.request('main', 'delete')
      service.wake()
      const deleting = await eventually(
        () => world.mustResource('main'),
        resource => resource.metadata.deletionTimestamp !== undefined,
        'deleting',
      )
      await leaveRecord(world.client('svc-operator'), deleting)
      // As long as a fold that does not wait takes, many times over.
      await new Promise(resolve => setTimeout(resolve, 500))
      const { phase, operations } = await world.rows('main')
      assert.deepEqual([phase, operations[1]?.state], ['deleting', 'running'])
      assert.equal((await world.deletionRecords(world.kubectl)).length, 1)
      operator.paused = false
      const after = await world.until('main', rows => rows.phase === 'deleted')
      assert.equal(after.operations[1]?.state, 'succeeded')
      const held = await world.mustResource('main')
      assert.deepEqual(held.metadata.finalizers, ['example.com/hold'])
      const { uid, resourceVersion } = held.metadata
      const letGo = { metadata: { finalizers: [] } }
      await world.kubectl.patch(environmentType, keyOfEnvironment('main'), letGo, { uid, resourceVersion })
    })

    it('takes in what kubectl made in a project’s namespace, and leaves alone what is no project of ours', async () => {
      const service = world.replica()
      await service.ready()
      const make = (id: string, namespace: string, organizationId = 'acme') => {
        const path = { ...pathOf(id), organizationId }
        const name = `${organizationId}.shop.${id}`
        return world.kubectl.create(environmentType, { namespace, name, spec: { ...path, kind: 'staging' } })
      }
      await make('elsewhere', ANOTHER_NAMESPACE)
      await make('main', NAMESPACE, 'globex')
      await make('main', NAMESPACE)
      await world.until('main', ({ phase }) => phase === 'ready')
      await world.request('main', 'suspend')
      service.wake()
      await world.until('main', ({ phase }) => phase === 'suspended')
      const rows = await world.database.rows(
        'select organization_id as organization, environment_id as id from environments',
      )
      assert.deepEqual(rows, [{ organization: 'acme', id: 'main' }])
      assert.deepEqual(await brief(), ['kubernetes:kubectl create_environment shop/main'])
      assert.deepEqual(await operationsOf('main'), [`suspend_environment succeeded ${USER}`])
    })

    it('takes in what was made before its project, once that is there', async () => {
      await world.database.transaction(sql => sql.rows('update projects set deleted_at = now()'))
      const registry = new Registry()
      await world.replica({ config: { lookAgainAfterMs: 50 }, registry }).ready()
      await world.kubectl.create(environmentType, {
        ...keyOfEnvironment('main'),
        spec: { ...pathOf('main'), kind: 'staging' },
      })
      await eventually(
        () => registry.metrics(),
        text => /^svc_environments_left_alone 1$/m.test(text),
        'left alone',
      )
      await world.database.transaction(sql => sql.rows('update projects set deleted_at = null'))
      await world.until('main', ({ phase }) => phase === 'ready')
      assert.match(await registry.metrics(), /^svc_environments_left_alone 0$/m)
    })

    it('tells of what was made and deleted while nobody looked, where there is a project', async () => {
      await world.client('kubectl').create(environmentType, {
        ...keyOfEnvironment('main'),
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), kind: 'staging' },
      })
      await deleteByHand('main')
      await world.gone('main')
      const elsewhere = { namespace: ANOTHER_NAMESPACE, name: 'globex.shop.main' }
      const foreign = await world.kubectl.create(environmentType, {
        ...elsewhere,
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), organizationId: 'globex', kind: 'staging' },
      })
      await world.kubectl.delete(environmentType, elsewhere, { uid: foreign.metadata.uid })
      await eventually(
        () => world.deletionRecords(world.kubectl),
        records => records.length === 2,
        'both recorded',
      )
      const service = world.replica()
      await service.ready()
      await service.stop()
      await world.replica().ready()
      assert.deepEqual(await brief(), [`${world.deleterActor('kubectl')} delete_environment shop/main`])
      assert.deepEqual(
        (await world.deletionRecords(world.kubectl)).map(({ spec }) => spec.organizationId),
        ['globex'],
        'what is not ours stays',
      )
    })

    it('goes on with the numbers of a resource that was applied anew from a copy', async () => {
      const service = await ready('main')
      await world.request('main', 'suspend')
      service.wake()
      await world.until('main', ({ phase }) => phase === 'suspended')
      const { spec, metadata } = await world.mustResource('main')
      await deleteByHand('main')
      await world.until('main', ({ phase }) => phase === 'deleted')
      await world.gone('main')
      const copy = await world.kubectl.create(environmentType, { ...keyOfEnvironment('main'), spec })
      await world.until('main', ({ uid, phase }) => uid === copy.metadata.uid && phase === 'suspended')
      await world.request('main', 'resume')
      service.wake()
      const { operations } = await world.until('main', ({ phase }) => phase === 'ready')
      assert.equal(operations[0]?.state, 'succeeded')
      assert.notEqual(copy.metadata.uid, metadata.uid)
    })

    it('removes what a create of ours made after its environment had ended', async () => {
      const service = await ready('main')
      await world.request('main', 'delete')
      service.wake()
      await world.until('main', ({ phase }) => phase === 'deleted')
      await world.gone('main')
      const [operation] = await world.database.rows<{ id: string }>(
        `select id from operations where kind = 'create_environment'`,
      )
      assert.ok(operation)
      // As a dispatcher would that slept between its look and its write.
      await world.client('svc-apiserver').create(environmentType, {
        ...keyOfEnvironment('main'),
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), kind: 'staging', request: { id: operation.id, seq: 1, verb: 'create' } },
      })
      await world.gone('main')
      assert.equal((await world.rows('main')).phase, 'deleted')
    })

    it('goes on after the last request that a resource carries, where the rows are of a backup before it', async () => {
      const service = await ready('main')
      const { metadata } = await world.mustResource('main')
      const forgotten = { id: 'op_forgotten', seq: 7, verb: 'suspend' }
      await world
        .client('svc-apiserver')
        .patch(
          environmentType,
          keyOfEnvironment('main'),
          { spec: { suspended: true, request: forgotten } },
          { uid: metadata.uid },
        )
      await world.until('main', ({ phase }) => phase === 'suspended')
      await world.request('main', 'resume')
      service.wake()
      const { operations } = await world.until('main', ({ phase }) => phase === 'ready')
      assert.equal(operations[1]?.state, 'succeeded')
      assert.equal((await world.mustResource('main')).spec.request?.seq, 8)
    })

    it('ends an operation at its deadline and never touches it again, whatever becomes of the environment', async () => {
      operator.paused = true
      await world.requestCreate('main')
      const service = world.replica()
      service.wake()
      await world.until('main', rows => rows.operations[0]?.state === 'running')
      await world.database.transaction(sql => sql.rows(`update operations set deadline_at = now()`))
      const failed = await world.until('main', rows => rows.operations[0]?.state === 'failed')
      assert.match(failed.operations[0]?.error ?? '', /^deadline_exceeded: .*may still become ready/)
      operator.paused = false
      const after = await world.until('main', ({ phase }) => phase === 'ready')
      assert.deepEqual(after.operations, failed.operations)
    })

    it('writes nothing while nothing changes, a new start included', async () => {
      const service = await ready('main')
      await ready('staging')
      // Every version of every row that we may read: the server's own counters of writes come late.
      const written = async (): Promise<Record<string, unknown>> => {
        const tables = await world.database.rows<{ name: string }>(
          `select tablename as name from pg_tables
            where schemaname = 'public' and tablename <> 'leases' and has_table_privilege(format('%I.%I', schemaname, tablename), 'select')`,
        )
        const seen: Record<string, unknown> = {}
        for (const { name } of tables)
          seen[name] = await world.database.rows(`select xmin::text, ctid::text from ${name} order by 2`)
        return seen
      }
      // Not the version of the list, which on Kubernetes rises with everybody's writes.
      const versions = async (): Promise<string[]> =>
        (await world.kubectl.list(environmentType)).items.map(({ metadata }) => metadata.resourceVersion)
      const before = [await written(), await versions()]
      await service.stop()
      await world.replica().ready()
      const after = [await written(), await versions()]
      assert.deepEqual(after, before)
    })
  })
}
