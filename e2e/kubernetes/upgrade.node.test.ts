/** An upgrade of the product, and the way back, over live environments: no database notices. */
import assert from 'node:assert/strict'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { Tenant } from '../tenant.ts'
import { installedRelease, type Release } from './release.ts'

const LIVE = 20

describe('an upgrade of the release', function () {
  this.timeout(600_000)
  let release: Release
  before(async () => {
    release = await installedRelease()
  })

  it('restarts no pod of twenty environments, nor does the rollback, and every session stays open', async () => {
    const { world, cluster } = release
    const tenant = await Tenant.create(world)
    const ids = Array.from({ length: LIVE }, (_, index) => `live-${index + 1}`)
    await Promise.all(ids.map(id => tenant.createEnvironment(id, { kind: 'preview' })))
    const { namespace } = tenant.key('live-1')
    const pods = async (): Promise<readonly (readonly [string, string | undefined, number])[]> =>
      (await cluster.objects.list(POD, { namespace })).items
        .map(
          ({ metadata, status }) =>
            [metadata!.name!, metadata!.uid, status?.containerStatuses?.[0]?.restartCount ?? -1] as const,
        )
        .sort(([a], [b]) => (a < b ? -1 : 1))
    const sessions = await Promise.all(ids.map(id => tenant.open(id)))
    const before = await pods()
    assert.equal(before.length, ids.length)
    // Both deployments get new pods by it.
    await release.upgrade(['operator.resources.requests.cpu=110m', 'apiServer.resources.requests.cpu=110m'])
    assert.deepEqual(await pods(), before)
    await release.rollback()
    assert.deepEqual(await pods(), before)
    for (const session of sessions) {
      assert.deepEqual(await session.rows('select 1 as one'), [{ one: 1 }])
      await session.close()
    }
    for (const id of ids) assert.equal((await tenant.inPhase(id, 'ready')).phase, 'ready')
    await Promise.all(ids.map(id => tenant.run('delete', id)))
  })
})
