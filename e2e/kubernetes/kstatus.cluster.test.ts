/** What GitOps tools take an environment for, at every moment of its life: whoever waits for it neither goes on too early nor waits for ever. */
import assert from 'node:assert/strict'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { type Kstatus, kstatusOf } from '../../testkit/kubernetes/kstatus.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

describe('an environment as kstatus reads it', function () {
  this.timeout(240_000)
  let scene: OperatorScene

  before(async function () {
    scene = await OperatorScene.start(this, 'kstatus')
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const now = async (environment: FakedEnvironment): Promise<Kstatus> => kstatusOf((await environment.get())!)

  /** Everything that a watcher sees of it from `since` until its `last`, the same in a row once. */
  const seenUntil = async (
    environment: FakedEnvironment,
    since: Environment,
    last: (environment: Environment) => boolean,
  ): Promise<Kstatus[]> => {
    const ended = new AbortController()
    const seen = [kstatusOf(since)]
    const from = since.metadata.resourceVersion
    const selector = { namespace: environment.key.namespace }
    for await (const event of scene.faked.store.watch(environmentType, { from, selector, signal: ended.signal })) {
      if (event.type === 'bookmark') continue
      const status = kstatusOf(event.object)
      if (event.type !== 'deleted' && status !== seen.at(-1)) seen.push(status)
      if (event.type === 'deleted' || last(event.object)) ended.abort()
    }
    return seen
  }
  const inPhase =
    (phase: string) =>
    ({ metadata, status }: Environment): boolean =>
      status?.phase === phase && status.observedGeneration === metadata.generation

  it('is in progress before anybody looked at it, and until it is ready', async () => {
    assert.equal(await scene.operator.stop(), 0)
    const environment = await scene.prepared()
    await environment.ask('create')
    const unseen = (await environment.get())!
    assert.deepEqual(unseen.metadata.finalizers, [], 'an operator has seen it')
    const seen = seenUntil(environment, unseen, inPhase('ready'))
    await scene.operator.start()
    assert.deepEqual(await seen, ['InProgress', 'Current'])
  })

  it('is in progress from a change of its spec on, until that is served', async () => {
    const environment = await scene.made()
    const before = (await environment.get())!
    assert.equal(kstatusOf(before), 'Current')
    const seen = seenUntil(
      environment,
      before,
      changed => changed.metadata.generation > 1 && kstatusOf(changed) === 'Current',
    )
    await scene.edit(environment, { deletionProtection: true, resources: { maxConnections: 40 } })
    assert.deepEqual(await seen, ['Current', 'InProgress', 'Current'])
    await scene.edit(environment, { deletionProtection: false })
  })

  it('is never taken for ready while it sleeps, nor until it is awake', async () => {
    const environment = await scene.made()
    const before = (await environment.get())!
    const falling = seenUntil(environment, before, inPhase('suspended'))
    await environment.ask('suspend', { suspended: true })
    assert.deepEqual(await falling, ['Current', 'InProgress'])
    await scene.done(environment)
    const rising = seenUntil(environment, (await environment.get())!, inPhase('ready'))
    await environment.ask('resume', { suspended: false })
    assert.deepEqual(await rising, ['InProgress', 'Current'])
  })

  it('has failed where nothing follows without a change, and goes on with it', async () => {
    const environment = await scene.prepared()
    const { namespace } = environment.key
    await scene.kubectl.must(['label', 'namespace', namespace, 'svc.internal/project=another', '--overwrite'])
    await environment.ask('create')
    await scene.until(
      'it stalls',
      () => now(environment),
      status => status === 'Failed',
    )
    await scene.kubectl.must([
      'label',
      'namespace',
      namespace,
      `svc.internal/project=${environment.projectId}`,
      '--overwrite',
    ])
    await scene.edit(environment, { region: 'here' })
    await scene.until(
      'it is ready',
      () => now(environment),
      status => status === 'Current',
    )
  })

  it('is terminating from the moment that its deletion was asked for, until it is gone', async () => {
    const environment = await scene.made()
    const seen = seenUntil(environment, (await environment.get())!, () => false)
    await environment.ask('delete', { deletionPolicy: 'Delete' })
    const [before, ...after] = await seen
    assert.equal(before, 'Current')
    // The request of the deletion is a change of the spec.
    assert.equal(after.at(-1), 'Terminating')
    assert.ok(!after.includes('Current'), String(after))
  })
})
