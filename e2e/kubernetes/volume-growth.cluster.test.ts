/** Bigger volumes, as far as an API server decides on them: what is asked of a claim, when, and what is told where nothing is. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { conditionOf } from '../../crds/conditions.ts'
import { storageClasses } from '../../operator/host/kubernetes/object-types.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

const GIB = 2 ** 30
const resources = (storage: string) => ({ resources: { cpu: '100m', memory: '128Mi', storage, maxConnections: 10 } })
/** What Postgres says last when it cannot write. */
const NO_ROOM = 'FATAL:  could not write to file "pg_wal/xlogtemp.7": No space left on device'

describe('a volume that is to be bigger', function () {
  this.timeout(120_000)
  const className = `t-growing-${randomBytes(4).toString('hex')}`
  let scene: OperatorScene

  before(async function () {
    scene = await OperatorScene.start(this, 'growing', {
      SERVICE_ENVIRONMENTS: JSON.stringify({ storageClass: className }),
    })
    await scene.faked.cluster.objects.create(storageClasses, {
      metadata: { name: className },
      provisioner: 'svc.internal/faked',
      allowVolumeExpansion: true,
    })
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    if (scene === undefined) return
    await scene.stop()
    await scene.kubectl.must(['delete', 'storageclass', className])
  })
  afterEach(() => allow(true))

  const allow = (is: boolean): Promise<string> =>
    scene.kubectl.must(['patch', 'storageclass', className, '-p', JSON.stringify({ allowVolumeExpansion: is })])
  const requested = async (environment: FakedEnvironment): Promise<string | undefined> =>
    (await scene.claim(environment))?.spec?.resources?.requests?.['storage']
  const asksFor = (environment: FakedEnvironment, bytes: number): Promise<string | undefined> =>
    scene.until(
      `a claim of ${bytes}`,
      () => requested(environment),
      seen => seen === String(bytes) || seen === `${bytes / GIB}Gi`,
    )
  const storage = async (environment: FakedEnvironment) =>
    conditionOf((await environment.get())?.status?.conditions, 'StorageReady')

  it('is asked for by its claim, while the same server goes on', async () => {
    const environment = await scene.made(resources('1Gi'))
    assert.equal((await scene.claim(environment))?.status?.phase, 'Bound')
    const before = await scene.podUid(environment)
    await scene.edit(environment, resources('3Gi'))
    await asksFor(environment, 3 * GIB)
    await scene.until(
      'seen as it is',
      () => environment.get(),
      seen => seen?.status?.observedGeneration === seen?.metadata.generation && seen?.status?.phase === 'ready',
    )
    assert.equal((await storage(environment))?.status, 'True')
    assert.equal(await scene.podUid(environment), before, 'Postgres was restarted for it')
  })

  it('is asked for while the disk is full and Postgres cannot start', async () => {
    const environment = await scene.made(resources('1Gi'))
    scene.faked.pods.behave({ startMs: 3_600_000 })
    const { pod } = await scene.names(environment)
    await scene.faked.pods.crash({ ...environment.key, name: pod }, { exitCode: 1, message: NO_ROOM })
    await scene.until(
      'the reason is told',
      () => scene.reason(environment, 'StorageReady'),
      seen => seen === 'DiskFull',
    )
    await scene.edit(environment, resources('2Gi'))
    await asksFor(environment, 2 * GIB)
    scene.faked.pods.behave({})
    await scene.faked.pods.startAgain({ ...environment.key, name: pod })
    await scene.until(
      'it is well',
      () => scene.reason(environment, 'Ready'),
      seen => seen === 'Ready',
    )
    assert.equal((await storage(environment))?.status, 'True')
  })

  it('never shrinks: a claim that is bigger than the spec stays', async () => {
    const environment = await scene.made(resources('1Gi'))
    const claim = (await scene.claim(environment))!
    const { namespace } = environment.key
    const patch = JSON.stringify({ spec: { resources: { requests: { storage: '5Gi' } } } })
    await scene.kubectl.must(['-n', namespace, 'patch', 'pvc', claim.metadata!.name!, '-p', patch])
    await scene.edit(environment, resources('2Gi'))
    await scene.until(
      'seen',
      () => environment.get(),
      seen => seen?.status?.observedGeneration === seen?.metadata.generation && seen?.status?.phase === 'ready',
    )
    assert.equal(await requested(environment), '5Gi')
    assert.equal((await storage(environment))?.status, 'True')
    await assert.rejects(scene.edit(environment, resources('1Gi')), { reason: 'Invalid' })
  })

  it('is told of when its class does not allow it, and the environment goes on', async () => {
    const environment = await scene.made(resources('1Gi'))
    await allow(false)
    await scene.edit(environment, resources('3Gi'))
    await scene.until(
      'the reason is told',
      () => scene.reason(environment, 'StorageReady'),
      seen => seen === 'VolumeNotExpandable',
    )
    assert.match((await storage(environment))?.message ?? '', new RegExp(className))
    assert.equal(await requested(environment), String(GIB))
    assert.equal((await environment.get())?.status?.phase, 'ready')
    // Whatever a person does next that the operator hears of is looked at with the class as it is then.
    await allow(true)
    await scene.edit(environment, resources('4Gi'))
    await asksFor(environment, 4 * GIB)
    await scene.until(
      'it is well',
      () => storage(environment),
      seen => seen?.status === 'True',
    )
  })
})
