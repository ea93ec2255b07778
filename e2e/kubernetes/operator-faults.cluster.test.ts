/** Trouble of a cluster that an operator has to live with: old views, writers beside it, an API server that is slow, busy or refuses. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConditionType, conditionOf } from '../../crds/conditions.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { claims, pods, statefulSets } from '../../operator/host/kubernetes/object-types.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import { absentWebhook, type Judged } from '../../testkit/kubernetes/absent-webhook.ts'
import type { Exchange, FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import type { FakedEnvironment } from './faked-environment.ts'
import { OperatorScene } from './operator-scene.ts'

/** Longer than the operator waits for a cache before it asks the API server itself. */
const FROZEN_MS = 6000
const STORM_MS = 3000

describe('an operator in trouble', function () {
  this.timeout(240_000)
  let scene: OperatorScene
  let proxy: FaultProxy

  before(async function () {
    ;({ scene, proxy } = await OperatorScene.startProxied(this, 'troubled'))
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => scene?.stop())

  const errorsSince = (length: number): string[] =>
    scene.operator.output
      .slice(length)
      .split('\n')
      .filter(line => /"level":"(error|fatal)"/.test(line))
  /** How often it made objects of a kind in a namespace; server-side apply of one that is there counts, too. */
  const writes = (since: number, resource: string, { key }: FakedEnvironment): Exchange[] =>
    proxy.exchanges
      .slice(since)
      .filter(call => call.resource === resource && call.mutation !== undefined && call.path.includes(key.namespace))
  const uids = async (environment: FakedEnvironment): Promise<unknown[]> => {
    const place = { namespace: environment.key.namespace }
    const { objects } = scene.faked.cluster
    const found = await Promise.all([
      objects.list(statefulSets, place),
      objects.list(claims, place),
      objects.list(pods, place),
    ])
    return found.map(({ items }) => items.map(({ metadata }) => metadata?.uid))
  }

  for (const frozen of ['statefulsets', 'persistentvolumeclaims', 'environments'])
    it(`makes nothing twice and tells no error while its watch of ${frozen} shows the past`, async () => {
      const [said, calls] = [scene.operator.output.length, proxy.exchanges.length]
      const fault = proxy.inject(({ verb, resource }) => verb === 'watch' && resource === frozen, {
        watch: { kind: 'delayed', ms: FROZEN_MS },
      })
      // Its open watches know nothing of it: they are broken once.
      await proxy.down()
      await proxy.up()
      await scene.until(
        'the watch is frozen',
        () => fault.count,
        count => count > 0,
      )
      const environment = await scene.prepared()
      await environment.ask('create')
      await scene.done(environment)
      const made = await uids(environment)
      assert.deepEqual(
        made.map(list => (list as unknown[]).length),
        [1, 1, 1],
      )
      // All that is late has come by then: the same objects, and nothing to put right.
      await sleep(FROZEN_MS + 500)
      assert.deepEqual(await uids(environment), made)
      fault.remove()
      assert.deepEqual(errorsSince(said), [])
      const applied = writes(calls, 'persistentvolumeclaims', environment).filter(({ query }) =>
        query.has('fieldManager'),
      )
      assert.equal(applied.filter(({ query, verb }) => verb === 'patch' && query.get('force') === 'true').length, 1)
      await proxy.down()
      await proxy.up()
    })

  it('loses nobody’s fields in a storm of other writers, and tells no error', async () => {
    const said = scene.operator.output.length
    const environment = await scene.made()
    const { uid } = (await environment.get())!.metadata
    const { name } = await scene.names(environment)
    const { objects } = scene.faked.cluster
    const { namespace } = environment.key
    let storming = true
    let conflicts = 0
    const storm = async (write: (n: number) => Promise<unknown>): Promise<number> => {
      for (let n = 1; ; n++) {
        await write(n).catch((error: unknown) => {
          if (!isStoreError(error, 'Conflict')) throw error
          conflicts++
        })
        if (!storming) return n
        await sleep(20)
      }
    }
    const patch = (n: number): Readonly<Record<string, unknown>> => ({
      metadata: { annotations: { 'storm.example.com/n': String(n) } },
    })
    const storms = [
      storm(n => scene.faked.store.patch(environmentType, environment.key, patch(n), { uid })),
      storm(n => objects.merge(statefulSets, { namespace, name }, patch(n))),
    ]
    const began = Date.now()
    try {
      for (const [verb, suspended] of [
        ['suspend', true],
        ['resume', false],
      ] as const) {
        await environment.ask(verb, { suspended })
        await scene.done(environment)
      }
      await sleep(Math.max(0, STORM_MS - (Date.now() - began)))
    } finally {
      storming = false
    }
    const [last, lastOfSet] = await Promise.all(storms)
    assert.equal((await environment.get())?.metadata.annotations['storm.example.com/n'], String(last))
    const set = await objects.get(statefulSets, { namespace, name })
    assert.equal(set?.metadata?.annotations?.['storm.example.com/n'], String(lastOfSet))
    assert.equal(set.spec?.replicas, 1)
    assert.deepEqual(errorsSince(said), [], `${conflicts} conflicts of the storm's own`)
  })

  const refusing = ({ key }: FakedEnvironment, judged: Judged): Promise<() => Promise<unknown>> =>
    absentWebhook(scene.faked.cluster, key.namespace, judged)
  const said = async (environment: FakedEnvironment, type: ConditionType): Promise<string> => {
    const { status, reason, message } = conditionOf((await environment.get())?.status?.conditions, type) ?? {}
    return `${status}/${reason}: ${message}`
  }

  it('does what waits for no webhook while one that is absent refuses StatefulSets, and says why, until it is gone', async () => {
    const [refused, free] = [await scene.prepared(), await scene.made()]
    const end = await refusing(refused, { apiGroup: 'apps', resource: 'statefulsets' })
    try {
      await refused.ask('create')
      const { name } = await scene.names(refused)
      const why = `The cluster refuses StatefulSet ${name}, failed calling webhook "absent.example.com"`
      await scene.until(
        'the reason is told',
        () => said(refused, 'Ready'),
        text => text === `False/WriteRefused: ${why}`,
      )
      assert.equal(await said(refused, 'DatabaseReachable'), `False/WriteRefused: ${why}`)
      assert.match(await said(refused, 'Reconciling'), /^True\//)
      assert.ok((await scene.told(refused)).includes('Warning WriteRefused'))
      await free.ask('suspend', { suspended: true })
      await scene.done(free)
    } finally {
      await end()
    }
    await scene.done(refused)
    assert.match(await said(refused, 'Ready'), /^True\/Ready/)
  })

  it('says that a quota leaves no room for the data, and goes on once there is some', async () => {
    const environment = await scene.prepared()
    const { namespace } = environment.key
    const kubectl = (...args: string[]): Promise<string> => scene.kubectl.must(['-n', namespace, ...args])
    await kubectl('create', 'quota', 'small', '--hard=requests.storage=1Gi')
    await scene.until(
      'the quota is counted',
      () => kubectl('get', 'quota', 'small', '-o', 'jsonpath={.status.hard}'),
      text => text !== '',
    )
    await environment.ask('create', { resources: { storage: '2Gi' } })
    const why = await scene.until(
      'the reason is told',
      () => said(environment, 'StorageReady'),
      text => text.startsWith('False/WriteRefused'),
    )
    const { claim } = await scene.names(environment)
    assert.ok(
      why.includes(`PersistentVolumeClaim ${claim}, over quota "small": requested: requests.storage=2147483648`),
      why,
    )
    assert.equal(await said(environment, 'Ready'), why)
    await kubectl('delete', 'quota', 'small')
    await scene.done(environment)
  })

  it('says of what somebody took away that it cannot be put back, and puts it back as soon as it can', async () => {
    const environment = await scene.made()
    const { namespace } = environment.key
    const { name } = await scene.names(environment)
    const end = await refusing(environment, { apiGroup: '', resource: 'services' })
    try {
      await scene.kubectl.must(['-n', namespace, 'delete', 'service', name])
      await scene.until(
        'the reason is told',
        async () => [await said(environment, 'Reconciling'), await said(environment, 'Ready')],
        texts =>
          texts.some(text =>
            text.includes(`WriteRefused: The cluster refuses Service ${name}, failed calling webhook`),
          ),
      )
    } finally {
      await end()
    }
    await scene.until(
      'all is well',
      async () => [await said(environment, 'Ready'), await said(environment, 'Reconciling')],
      ([ready = '', reconciling = '']) => ready.startsWith('True/') && reconciling.startsWith('undefined/'),
    )
  })

  it('does other work while calls for one environment are slow as a sleeping webhook', async () => {
    const [slow, free] = [await scene.prepared(), await scene.made()]
    const fault = proxy.inject(
      ({ mutation, path }) => mutation !== undefined && path.includes(slow.key.namespace),
      { delayMs: 9000 },
      2,
    )
    await slow.ask('create')
    await scene.until(
      'a call is slow',
      () => fault.count,
      count => count > 0,
    )
    await free.ask('suspend', { suspended: true })
    await scene.done(free)
    assert.notEqual((await slow.get())?.status?.phase, 'ready')
    await scene.done(slow)
  })

  it('waits as long as a busy API server says, keeps its lease meanwhile, and does everything then', async () => {
    const since = proxy.exchanges.length
    const [said, restarts] = [scene.operator.output.length, scene.operator.running]
    const fault = proxy.inject(
      ({ mutation }) => mutation !== undefined,
      { answer: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
      60,
    )
    const environments = await Promise.all([scene.prepared(), scene.prepared(), scene.prepared()])
    for (const environment of environments) await environment.ask('create')
    await Promise.all(environments.map(environment => scene.done(environment)))
    fault.remove()
    assert.ok(fault.count > 0, 'nothing was refused')
    const leases = proxy.exchanges
      .slice(since)
      .filter(({ resource, method }) => resource === 'leases' && method !== 'GET')
    assert.ok(leases.length > 0, 'the lease was not renewed')
    assert.equal(scene.operator.running, restarts)
    assert.doesNotMatch(scene.operator.output.slice(said), /lost the lease|"level":"(error|fatal)"/)
    // Whoever is told to come back in a second does not ask before.
    const refusedOnce = environments.map(environment => writes(since, 'statefulsets', environment).length)
    assert.ok(
      refusedOnce.every(count => count <= 60),
      String(refusedOnce),
    )
  })
})
