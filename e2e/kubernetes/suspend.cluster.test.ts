/** Suspends as they are asked for in trouble: of servers that crash, of those that were given up, and of one that did not stop well. */
import assert from 'node:assert/strict'
import { conditionOf } from '../../crds/conditions.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

/** A server that was killed: 128 + SIGKILL. */
const KILLED = 137
/** It does not come up again by itself within a test. */
const NEVER = { startMs: 3_600_000 }

describe('a suspend', function () {
  this.timeout(120_000)
  let scene: OperatorScene
  before(async function () {
    // The shortest that there is until a server is given up.
    scene = await OperatorScene.start(this, 'suspends', { SERVICE_OPERATOR_ATTEMPT_SECONDS: '10' })
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())
  afterEach(() => scene.faked.pods.behave({}))

  const podsOf = async ({ key }: FakedEnvironment): Promise<number> =>
    (await scene.faked.cluster.objects.list(POD, { namespace: key.namespace })).items.length
  const crash = async (environment: FakedEnvironment): Promise<void> => {
    const { pod } = await scene.names(environment)
    await scene.faked.pods.crash({ ...environment.key, name: pod }, { exitCode: 1 })
  }
  /** Suspends it, and looks for pods at the moment at which it is said to be suspended. */
  const suspend = async (environment: FakedEnvironment): Promise<void> => {
    await environment.ask('suspend', { suspended: true })
    await scene.until(
      'suspended',
      () => environment.get(),
      seen => seen?.status?.phase === 'suspended',
    )
    assert.equal(await podsOf(environment), 0)
    await scene.done(environment)
  }
  const resume = async (environment: FakedEnvironment): Promise<void> => {
    scene.faked.pods.behave({})
    await environment.ask('resume', { suspended: false })
    await scene.done(environment)
    assert.equal(await scene.reason(environment, 'Ready'), 'Ready')
  }

  it('is done while the server crashes again and again', async () => {
    const environment = await scene.made()
    for (let crashes = 1; crashes <= 3; crashes++) {
      if (crashes === 3) scene.faked.pods.behave(NEVER)
      await crash(environment)
      if (crashes < 3) await scene.until('it runs', () => podsReady(environment), Boolean)
    }
    await scene.until(
      'the crash is told',
      () => scene.reason(environment, 'DatabaseReachable'),
      seen => seen === 'Crashed',
    )
    assert.notEqual((await environment.get())?.status?.phase, 'failed_recoverable')
    await suspend(environment)
    await resume(environment)
  })
  const podsReady = async ({ key }: FakedEnvironment): Promise<boolean> => {
    const { items } = await scene.faked.cluster.objects.list(POD, { namespace: key.namespace })
    return items.some(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    )
  }

  it('is done of one that was given up', async () => {
    const environment = await scene.made()
    scene.faked.pods.behave(NEVER)
    await crash(environment)
    await scene.until(
      'given up',
      () => environment.get(),
      seen => seen?.status?.phase === 'failed_recoverable',
    )
    await suspend(environment)
    await resume(environment)
  })

  it('says that a server was killed before it had stopped, until one runs again', async () => {
    const environment = await scene.made()
    const unclean = async () => conditionOf((await environment.get())?.status?.conditions, 'UncleanStop')
    await suspend(environment)
    assert.equal(await unclean(), undefined)
    await resume(environment)
    scene.faked.pods.behave({ exitCode: KILLED })
    await suspend(environment)
    const said = await unclean()
    assert.deepEqual([said?.status, said?.reason], ['True', 'NoShutdownCheckpoint'])
    await scene.until(
      'it is told',
      () => scene.told(environment),
      told => told.includes('Warning NoShutdownCheckpoint'),
    )
    await resume(environment)
    assert.equal(await unclean(), undefined)
  })
})
