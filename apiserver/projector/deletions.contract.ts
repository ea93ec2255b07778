import assert from 'node:assert/strict'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { type OpenPlace } from '../../testkit/dispatch-places.ts'
import { eventually, keyOfEnvironment, USER } from '../../testkit/dispatch-world.ts'
import { projectorScene } from '../../testkit/projector-scene.ts'
import { leaveRecord } from '../../testkit/standin-operator.ts'

/** What the projector makes of resources that go, by whoever’s hand. */
export const describeDeletions = (where: string, openPlace: OpenPlace): void => {
  describe(`what the projector makes of deletions, ${where}`, () => {
    const scene = projectorScene(openPlace)
    const { ready, deleteByHand, brief, operationsOf } = scene

    for (const isDown of [false, true]) {
      const when = isDown ? 'while nobody looked' : 'while we look'
      it(`records what expiry deleted ${when} as an operation and an event of system:ttl`, async () => {
        const service = await ready('pr-1', {
          kind: 'preview',
          expiresAt: '2026-01-01T00:00:00Z',
          deletionPolicy: 'Retain',
        })
        if (isDown) await service.stop()
        const { metadata } = await scene.world.mustResource('pr-1')
        const expired = {
          type: 'Expired',
          status: 'True',
          reason: 'TimeToLiveEnded',
          message: '',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-01T00:01:00Z',
        } as const
        const sweeper = scene.world.client('svc-operator')
        await sweeper.patchStatus(
          environmentType,
          keyOfEnvironment('pr-1'),
          { conditions: [expired] },
          { uid: metadata.uid },
        )
        await sweeper.delete(environmentType, keyOfEnvironment('pr-1'), { uid: metadata.uid })
        await scene.world.gone('pr-1')
        if (isDown) await scene.world.replica().ready()
        const { operations } = await scene.world.until('pr-1', ({ phase }) => phase === 'deleted')
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
        const [event] = await scene.world.audit()
        const swept = await scene.world.database.row<{ id: string }>(
          `select id from operations where actor = 'system:ttl'`,
        )
        assert.ok(swept)
        assert.equal(event?.metadata['operation_id'], swept.id)
        await eventually(
          async () => (await scene.world.kubectl.list(environmentType)).items.length,
          left => left === 0,
          'nothing left',
        )
      })

      it(`folds what kubectl deleted ${when} as gone, once`, async () => {
        const service = await ready('main')
        if (isDown) await service.stop()
        await deleteByHand('main')
        await scene.world.gone('main')
        if (isDown) await scene.world.replica().ready()
        await scene.world.until('main', ({ phase }) => phase === 'deleted')
        assert.deepEqual(await operationsOf('main'), [
          `create_environment succeeded ${USER}`,
          `delete_environment succeeded ${scene.world.deleterActor('kubectl')}`,
        ])
        assert.deepEqual(await brief(), [`${scene.world.deleterActor('kubectl')} delete_environment shop/main`])
      })

      it(`folds what vanished ${when} without a record as gone, by nobody knows whom`, async () => {
        const service = await ready('main')
        scene.operator.paused = true
        if (isDown) await service.stop()
        const { metadata } = await scene.world.mustResource('main')
        const finalizers = metadata.finalizers.filter(name => name !== ENVIRONMENT_FINALIZER)
        await scene.world.kubectl.patch(
          environmentType,
          keyOfEnvironment('main'),
          { metadata: { finalizers } },
          { uid: metadata.uid },
        )
        await deleteByHand('main')
        assert.equal(await scene.world.resource(scene.world.kubectl, 'main'), undefined)
        if (isDown) await scene.world.replica().ready()
        const { operations } = await scene.world.until('main', ({ phase }) => phase === 'deleted')
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
      const { uid } = await scene.world.rows('main')
      await scene.world.request('main', 'delete')
      service.wake()
      const { operations } = await scene.world.until('main', ({ phase }) => phase === 'deleted')
      assert.deepEqual(operations[1]?.result, {
        environment_id: 'main',
        phase: 'deleted',
        retained: true,
        retained_at: `/trash/${uid}`,
      })
      await eventually(
        () => scene.world.deletionRecords(scene.world.kubectl),
        records => records.length === 0,
        'record removed',
      )
      assert.deepEqual(await scene.world.audit(), [])
    })

    it('calls an environment deleted once the operator let go of it, whoever else still holds it', async () => {
      const service = await ready('main')
      scene.operator.paused = true
      const { metadata } = await scene.world.mustResource('main')
      const finalizers = [...metadata.finalizers, 'example.com/hold']
      await scene.world.kubectl.patch(environmentType, keyOfEnvironment('main'), { metadata: { finalizers } }, metadata)
      await scene.world.request('main', 'delete')
      service.wake()
      const deleting = await eventually(
        () => scene.world.mustResource('main'),
        resource => resource.metadata.deletionTimestamp !== undefined,
        'deleting',
      )
      await leaveRecord(scene.world.client('svc-operator'), deleting)
      // As long as a fold that does not wait takes, many times over.
      await new Promise(resolve => setTimeout(resolve, 500))
      const { phase, operations } = await scene.world.rows('main')
      assert.deepEqual([phase, operations[1]?.state], ['deleting', 'running'])
      assert.equal((await scene.world.deletionRecords(scene.world.kubectl)).length, 1)
      scene.operator.paused = false
      const after = await scene.world.until('main', rows => rows.phase === 'deleted')
      assert.equal(after.operations[1]?.state, 'succeeded')
      const held = await scene.world.mustResource('main')
      assert.deepEqual(held.metadata.finalizers, ['example.com/hold'])
      const { uid, resourceVersion } = held.metadata
      const letGo = { metadata: { finalizers: [] } }
      await scene.world.kubectl.patch(environmentType, keyOfEnvironment('main'), letGo, { uid, resourceVersion })
    })
  })
}
