import assert from 'node:assert/strict'
import { Registry } from 'prom-client'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { OVERTAKEN } from '../../lib/model/operation.ts'
import { ANOTHER_NAMESPACE, type OpenPlace } from '../../testkit/dispatch-places.ts'
import { eventually, keyOfEnvironment, NAMESPACE, pathOf, USER } from '../../testkit/dispatch-world.ts'
import { projectorScene } from '../../testkit/projector-scene.ts'

/** What the projector makes of changes that it sees, and of what was not there before. */
export const describeProjector = (where: string, openPlace: OpenPlace): void => {
  describe(`the projector, ${where}`, () => {
    const scene = projectorScene(openPlace)
    const { ready, edit, deleteByHand, brief, operationsOf } = scene

    it('records a change from outside once, with fields, generations and client, and takes over what it changes', async () => {
      const service = await ready('main')
      await edit('main', { suspended: true, deletionProtection: true })
      await scene.world.until('main', ({ phase }) => phase === 'suspended')
      const [event, ...others] = await scene.world.audit()
      const { uid } = await scene.world.rows('main')
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
      const row = await scene.world.database.row('select deletion_protection as protected from environments')
      assert.deepEqual(row, { protected: true })
      await service.stop()
      await scene.world.replica().ready()
      assert.equal((await scene.world.audit()).length, 1)
    })

    it('ends an operation that a change from outside makes unreachable', async () => {
      const service = await ready('main')
      scene.operator.paused = true
      await scene.world.request('main', 'suspend')
      service.wake()
      await eventually(
        () => scene.world.mustResource('main'),
        ({ spec }) => spec.suspended === true,
        'suspending',
      )
      await edit('main', { suspended: false })
      const { operations } = await scene.world.until('main', rows => rows.operations[1]?.state === 'failed')
      assert.equal(operations[1]?.error, OVERTAKEN)
      scene.operator.paused = false
      await eventually(brief, seen => seen.length === 1, 'recorded')
      assert.deepEqual(await brief(), ['kubernetes:kubectl external_change shop/main'])
    })

    it('tells our own change and one from outside apart that it sees at once', async () => {
      const service = await ready('main')
      await service.stop()
      await scene.world.request('main', 'suspend')
      await scene.world.requestUpdate('main', true)
      await edit('main', { image: 'postgres:17.10' })
      const again = scene.world.replica()
      await again.ready()
      again.wake()
      await scene.world.until('main', ({ phase }) => phase === 'suspended')
      const events = await scene.world.observed()
      assert.deepEqual(
        events.map(({ action, metadata }) => [action, metadata['fields']]),
        [['external_change', ['image']]],
      )
    })

    it('takes in what kubectl made in a project’s namespace, and leaves alone what is no project of ours', async () => {
      const service = scene.world.replica()
      await service.ready()
      const make = (id: string, namespace: string, organizationId = 'acme') => {
        const path = { ...pathOf(id), organizationId }
        const name = `${organizationId}.shop.${id}`
        return scene.world.kubectl.create(environmentType, { namespace, name, spec: { ...path, kind: 'staging' } })
      }
      await make('elsewhere', ANOTHER_NAMESPACE)
      await make('main', NAMESPACE, 'globex')
      await make('main', NAMESPACE)
      await scene.world.until('main', ({ phase }) => phase === 'ready')
      await scene.world.request('main', 'suspend')
      service.wake()
      await scene.world.until('main', ({ phase }) => phase === 'suspended')
      const rows = await scene.world.database.rows(
        'select organization_id as organization, environment_id as id from environments',
      )
      assert.deepEqual(rows, [{ organization: 'acme', id: 'main' }])
      assert.deepEqual(await brief(), ['kubernetes:kubectl create_environment shop/main'])
      assert.deepEqual(await operationsOf('main'), [`suspend_environment succeeded ${USER}`])
    })

    it('takes in what was made before its project, once that is there', async () => {
      await scene.world.database.transaction(sql => sql.rows('update projects set deleted_at = now()'))
      const registry = new Registry()
      await scene.world.replica({ config: { lookAgainAfterMs: 50 }, registry }).ready()
      await scene.world.kubectl.create(environmentType, {
        ...keyOfEnvironment('main'),
        spec: { ...pathOf('main'), kind: 'staging' },
      })
      await eventually(
        () => registry.metrics(),
        text => /^svc_environments_left_alone 1$/m.test(text),
        'left alone',
      )
      await scene.world.database.transaction(sql => sql.rows('update projects set deleted_at = null'))
      await scene.world.until('main', ({ phase }) => phase === 'ready')
      // Counted anew a moment after the row is there.
      await eventually(
        () => registry.metrics(),
        text => /^svc_environments_left_alone 0$/m.test(text),
        'taken in',
      )
    })

    it('tells of what was made and deleted while nobody looked, where there is a project', async () => {
      await scene.world.client('kubectl').create(environmentType, {
        ...keyOfEnvironment('main'),
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), kind: 'staging' },
      })
      await deleteByHand('main')
      await scene.world.gone('main')
      const elsewhere = { namespace: ANOTHER_NAMESPACE, name: 'globex.shop.main' }
      const foreign = await scene.world.kubectl.create(environmentType, {
        ...elsewhere,
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), organizationId: 'globex', kind: 'staging' },
      })
      await scene.world.kubectl.delete(environmentType, elsewhere, { uid: foreign.metadata.uid })
      await eventually(
        () => scene.world.deletionRecords(scene.world.kubectl),
        records => records.length === 2,
        'both recorded',
      )
      const service = scene.world.replica()
      await service.ready()
      await service.stop()
      await scene.world.replica().ready()
      assert.deepEqual(await brief(), [`${scene.world.deleterActor('kubectl')} delete_environment shop/main`])
      assert.deepEqual(
        (await scene.world.deletionRecords(scene.world.kubectl)).map(({ spec }) => spec.organizationId),
        ['globex'],
        'what is not ours stays',
      )
    })

    it('goes on with the numbers of a resource that was applied anew from a copy', async () => {
      const service = await ready('main')
      await scene.world.request('main', 'suspend')
      service.wake()
      await scene.world.until('main', ({ phase }) => phase === 'suspended')
      const { spec, metadata } = await scene.world.mustResource('main')
      await deleteByHand('main')
      await scene.world.until('main', ({ phase }) => phase === 'deleted')
      await scene.world.gone('main')
      const copy = await scene.world.kubectl.create(environmentType, { ...keyOfEnvironment('main'), spec })
      await scene.world.until('main', ({ uid, phase }) => uid === copy.metadata.uid && phase === 'suspended')
      await scene.world.request('main', 'resume')
      service.wake()
      const { operations } = await scene.world.until('main', ({ phase }) => phase === 'ready')
      assert.equal(operations[0]?.state, 'succeeded')
      assert.notEqual(copy.metadata.uid, metadata.uid)
    })

    it('removes what a create of ours made after its environment had ended', async () => {
      const service = await ready('main')
      await scene.world.request('main', 'delete')
      service.wake()
      await scene.world.until('main', ({ phase }) => phase === 'deleted')
      await scene.world.gone('main')
      const [operation] = await scene.world.database.rows<{ id: string }>(
        `select id from operations where kind = 'create_environment'`,
      )
      assert.ok(operation)
      // As a dispatcher would that slept between its look and its write.
      await scene.world.client('svc-apiserver').create(environmentType, {
        ...keyOfEnvironment('main'),
        finalizers: [ENVIRONMENT_FINALIZER],
        spec: { ...pathOf('main'), kind: 'staging', request: { id: operation.id, seq: 1, verb: 'create' } },
      })
      await scene.world.gone('main')
      assert.equal((await scene.world.rows('main')).phase, 'deleted')
    })

    it('goes on after the last request that a resource carries, where the rows are of a backup before it', async () => {
      const service = await ready('main')
      const { metadata } = await scene.world.mustResource('main')
      const forgotten = { id: 'op_forgotten', seq: 7, verb: 'suspend' }
      await scene.world
        .client('svc-apiserver')
        .patch(
          environmentType,
          keyOfEnvironment('main'),
          { spec: { suspended: true, request: forgotten } },
          { uid: metadata.uid },
        )
      await scene.world.until('main', ({ phase }) => phase === 'suspended')
      await scene.world.request('main', 'resume')
      service.wake()
      const { operations } = await scene.world.until('main', ({ phase }) => phase === 'ready')
      assert.equal(operations[1]?.state, 'succeeded')
      assert.equal((await scene.world.mustResource('main')).spec.request?.seq, 8)
    })

    it('ends an operation at its deadline and never touches it again, whatever becomes of the environment', async () => {
      scene.operator.paused = true
      await scene.world.requestCreate('main')
      const service = scene.world.replica()
      service.wake()
      await scene.world.until('main', rows => rows.operations[0]?.state === 'running')
      await scene.world.database.transaction(sql => sql.rows(`update operations set deadline_at = now()`))
      const failed = await scene.world.until('main', rows => rows.operations[0]?.state === 'failed')
      assert.match(failed.operations[0]?.error ?? '', /^deadline_exceeded: .*may still become ready/)
      scene.operator.paused = false
      const after = await scene.world.until('main', ({ phase }) => phase === 'ready')
      assert.deepEqual(after.operations, failed.operations)
    })

    it('writes nothing while nothing changes, a new start included', async () => {
      const service = await ready('main')
      await ready('staging')
      // Every version of every row that we may read: the server's own counters of writes come late.
      const written = async (): Promise<Record<string, unknown>> => {
        const tables = await scene.world.database.rows<{ name: string }>(
          `select tablename as name from pg_tables
            where schemaname = 'public' and tablename <> 'leases' and has_table_privilege(format('%I.%I', schemaname, tablename), 'select')`,
        )
        const seen: Record<string, unknown> = {}
        for (const { name } of tables)
          seen[name] = await scene.world.database.rows(`select xmin::text, ctid::text from ${name} order by 2`)
        return seen
      }
      // Not the version of the list, which on Kubernetes rises with everybody's writes.
      const versions = async (): Promise<string[]> =>
        (await scene.world.kubectl.list(environmentType)).items.map(({ metadata }) => metadata.resourceVersion)
      const before = [await written(), await versions()]
      await service.stop()
      await scene.world.replica().ready()
      const after = [await written(), await versions()]
      assert.deepEqual(after, before)
    })
  })
}
