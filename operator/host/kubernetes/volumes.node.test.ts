/** The cluster's own provisioner, and the folder that a volume is on the node: who removes it, and when nobody does. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import {
  bringUpOn,
  type HostScene,
  hostScene,
  SLOWEST_MS,
  untilHolds,
} from '../../../testkit/kubernetes/kubernetes-host.ts'
import { TEST_SPEC } from '../../../testkit/local-host.ts'
import { skipBecause } from '../../../testkit/skip-because.ts'
import { instanceNames } from './instance-names.ts'
import { claims, volumes } from './object-types.ts'

describe('the folder of a volume', function () {
  this.timeout(2 * SLOWEST_MS)

  /** An environment whose operator has gone away, and the folder of its data. */
  const abandoned = async (deletionPolicy: DeletionPolicy) => {
    const scene = await hostScene('volumes')
    const host = await scene.open()
    const ref = await scene.place()
    await bringUpOn(host, ref, { ...TEST_SPEC, deletionPolicy })
    const names = instanceNames(ref, scene.settings.managedBy)
    const claim = await scene.cluster.objects.get(claims, { namespace: scene.namespace, name: names.claim })
    const key = { namespace: '', name: claim?.spec?.volumeName ?? '' }
    const volume = () => scene.cluster.objects.get(volumes, key)
    await untilHolds(async () => (await volume())?.spec?.persistentVolumeReclaimPolicy === deletionPolicy)
    await host.stopAll()
    const { hostPath, local } = (await volume())?.spec ?? {}
    return { scene, volume, key, folder: hostPath?.path ?? local?.path ?? '' }
  }
  const removeNamespace = (scene: HostScene) =>
    scene.kubectl(['delete', 'namespace', scene.namespace, '--timeout=120s'])

  it('stays with its rows in it when the namespace of a retained environment is deleted and no operator is there', async function () {
    const { scene, volume, key, folder } = await abandoned('Retain')
    if (!existsSync(folder)) skipBecause(this, 'needs a node whose volumes are folders of this machine')
    await removeNamespace(scene)
    await untilHolds(async () => (await volume())?.status?.phase === 'Released')
    assert.ok(existsSync(join(folder, 'pgdata/PG_VERSION')), folder)
    // As docs/operations.md has an admin do it.
    await scene.kubectl(['patch', 'pv', key.name, '-p', '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'])
    await untilHolds(async () => (await volume()) === undefined)
    await untilHolds(() => !existsSync(folder))
  })

  it('goes with the namespace of a preview', async function () {
    const { scene, volume, folder } = await abandoned('Delete')
    if (!existsSync(folder)) skipBecause(this, 'needs a node whose volumes are folders of this machine')
    await removeNamespace(scene)
    await untilHolds(async () => (await volume()) === undefined)
    await untilHolds(() => !existsSync(folder))
  })
})
