/** Previews that run out while no operator is there: the sweep after its start takes those, and none that was renewed meanwhile. */
import assert from 'node:assert/strict'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

const COUNT = 50
const MINUTE = 60_000

describe(`${COUNT} previews that expire while the operator is away`, function () {
  this.timeout(240_000)
  let scene: OperatorScene
  before(async function () {
    scene = await OperatorScene.start(this, 'expiry')
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const expiresIn = (ms: number): { readonly expiresAt: string } => ({
    expiresAt: new Date(Date.now() + ms).toISOString(),
  })

  it('are swept once it is back, but those that were renewed before that', async () => {
    const previews: { readonly environment: FakedEnvironment; readonly uid: string }[] = []
    const made = await Promise.all(
      Array.from({ length: COUNT }, () => scene.made({ kind: 'preview', ...expiresIn(30 * MINUTE) })),
    )
    for (const environment of made) previews.push({ environment, uid: (await environment.get())!.metadata.uid })
    await scene.operator.stop()
    for (const { environment } of previews) await scene.edit(environment, expiresIn(-2 * MINUTE))
    const [renewed, over] = [previews.slice(0, COUNT / 2), previews.slice(COUNT / 2)]
    for (const { environment } of renewed) await scene.edit(environment, expiresIn(30 * MINUTE))
    await scene.operator.start()
    for (const { environment } of over)
      await scene.until(
        'swept',
        () => environment.get(),
        seen => seen === undefined,
      )
    for (const { environment, uid } of renewed) {
      const { metadata, status } = (await environment.get())!
      assert.deepEqual([metadata.uid, metadata.deletionTimestamp, status?.phase], [uid, undefined, 'ready'])
    }
    const { items } = await scene.faked.store.list(deletionRecordType, { namespace: scene.faked.namespace })
    const recorded = items.filter(({ spec }) => previews.some(({ uid }) => uid === spec.uid))
    assert.ok(recorded.every(({ spec }) => spec.cause === 'ttl'))
    assert.deepEqual(recorded.map(({ spec }) => spec.uid).sort(), over.map(({ uid }) => uid).sort())
  })
})
