/** What the operator watches breaks in every way that networks and servers know: every environment gets where it should be. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { sized } from '../../testkit/full.ts'
import { ClusterProcess, untilAnswered } from '../../testkit/kubernetes/cluster-process.ts'
import { compactHistory, etcdUrl, isForgotten } from '../../testkit/kubernetes/etcd.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import type { Exchange, Fault, FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { FakedEnvironment } from './faked-environment.ts'
import type { OperatorProcess } from './operator-process.ts'
import { proxiedOperator } from './proxied-operator.ts'

/** What a life cannot go on without; each of these watches is struck so often before the network is well again. */
const STRUCK = ['environments', 'statefulsets', 'pods', 'services', 'persistentvolumeclaims']
const STRIKES = 3
const DOWN_MS = sized(5_000, 30_000)
/** How long the API server itself is away. */
const ENDED_MS = 30_000
/** For how long a watch may be silent where it is to be found out: else a minute and a half. */
const IMPATIENT = { SERVICE_OPERATOR_WATCH_IDLE_SECONDS: '2' }

/** From a version on, as opposed to a list that comes as a stream. */
const follows = ({ verb, query }: Exchange): boolean => verb === 'watch' && !query.has('sendInitialEvents')
/** What is watched. */
const watchOf = ({ path, query }: Exchange): string => `${path}?${query.get('labelSelector') ?? ''}`

const FAULTS: Readonly<Record<string, Fault>> = {
  'connections that are reset': { watch: { kind: 'reset', after: 1 } },
  'streams cut within a line': { watch: { kind: 'cut', afterBytes: 700 } },
  'lines that are half there': { watch: { kind: 'truncated', after: 1 } },
  'lines that are no JSON': { watch: { kind: 'garbage', after: 1 } },
  'versions that are gone, told in the stream': { watch: { kind: 'gone', after: 1 } },
  'streams that end at once': { watch: { kind: 'closed', after: 0 } },
  'events that come twice': { watch: { kind: 'duplicated' } },
  'events that come late': { watch: { kind: 'delayed', ms: 500 } },
  'events of which only the last is told': { watch: { kind: 'merged', ms: 300 } },
  'versions that are gone, answered': { answer: 410, reason: 'Expired' },
  'an API server that fails': { answer: 500, reason: 'InternalError' },
  'an API server that says when to come back': { answer: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 },
}

describe('an operator whose watches break', function () {
  this.timeout(300_000)
  let faked: FakedCluster
  let proxy: FaultProxy
  let operator: OperatorProcess
  let started = false

  before(async function () {
    faked = await fakedCluster(this)
    ;({ proxy, operator } = await proxiedOperator(faked, 'watcher'))
    started = true
  })
  // A new process for each fault: one that was struck often waits longer and longer until it tries again.
  beforeEach(() => operator.start())
  afterEach(async () => {
    if (!started) return
    assert.ok(operator.running, operator.output.slice(-3000))
    assert.equal(await operator.stop(), 0, operator.output.slice(-3000))
  })
  after(async () => {
    if (!started) return
    await proxy.stop()
    await faked.assertSound()
  })

  const done = (environment: FakedEnvironment): Promise<void> =>
    environment.done({ tell: () => operator.output.slice(-3000) })

  /** A whole life, in which each step needs what the operator hears from watches. */
  const live = async (): Promise<void> => {
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    await done(environment)
    await environment.ask('suspend', { suspended: true })
    await done(environment)
    await environment.ask('resume', { suspended: false })
    await done(environment)
    await environment.ask('delete')
    await done(environment)
  }
  /** The sum of its samples; those with a label may not have happened yet. */
  const metric = async (name: string, label = ''): Promise<number> => {
    const text = await (await fetch(operator.metricsUrl)).text()
    const values = [...text.matchAll(new RegExp(`^${name}(?:{[^}]*${label}[^}]*})? ([0-9.e+]+)$`, 'gm'))].map(found =>
      Number(found[1]),
    )
    assert.ok(values.length > 0 || label !== '', `No metric ${name}`)
    return values.reduce((sum, value) => sum + value, 0)
  }
  /** Watches that were open before a fault was put in place know nothing of it: they are broken once. */
  const breakAll = async (): Promise<void> => {
    await proxy.down()
    await proxy.up()
  }

  /** Until no watch told anything for a second. */
  const quiet = async (): Promise<void> => {
    for (let [before, now] = [-1, 0]; before !== now; ) {
      await sleep(1_000)
      ;[before, now] = [now, await metric('reflector_events_total')]
    }
  }
  const until = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
    for (const end = Date.now() + 60_000; !(await holds()); ) {
      assert.ok(Date.now() < end, `${String(holds)}\n${operator.output.slice(-3000)}`)
      await sleep(25)
    }
  }
  /** Each of these watches is told once that its version is gone. Only the list after that shows what was missed. */
  const listAgain = async (watches: ReadonlySet<string>): Promise<void> => {
    const lists = (): Promise<number> => metric('reflector_lists_total', 'reason="gone"')
    const before = await lists()
    for (const watch of watches)
      proxy.inject(call => follows(call) && watchOf(call) === watch, { answer: 410, reason: 'Expired' }, 1)
    await breakAll()
    await until(async () => (await lists()) >= before + watches.size)
  }

  it('undisturbed, it misses nothing: a list of each kind finds no news', async () => {
    await Promise.all([live(), live(), live()])
    await quiet()
    const watches = new Set(proxy.exchanges.filter(follows).map(watchOf))
    for (const struck of STRUCK) assert.ok([...watches].join().includes(struck), struck)
    await listAgain(watches)
    assert.equal(await metric('reflector_missed_events_total'), 0)
  })

  it('counts the one change that no watch told', async () => {
    const [lost, told] = await Promise.all([FakedEnvironment.prepare(faked), FakedEnvironment.prepare(faked)])
    for (const environment of [lost, told]) await environment.ask('create')
    for (const environment of [lost, told]) await done(environment)
    await quiet()
    const ofEnvironments = (call: Exchange): boolean => follows(call) && call.resource === 'environments'
    const lossy = proxy.inject(ofEnvironments, { watch: { kind: 'lossy', after: 0 } }, 1)
    await breakAll()
    await until(() => lossy.count === 1)
    const heard = (): Promise<number> => metric('reflector_events_total', 'name="operator/Environment"')
    const before = await heard()
    for (const environment of [lost, told]) {
      const { uid } = (await environment.get())!.metadata
      const change = { metadata: { annotations: { 'example.com/changed': 'true' } } }
      await faked.store.patch(environmentType, environment.key, change, { uid })
    }
    await until(async () => (await heard()) > before)
    await listAgain(new Set(proxy.exchanges.filter(ofEnvironments).map(watchOf)))
    assert.equal(await metric('reflector_missed_events_total'), 1)
    for (const environment of [lost, told]) {
      await environment.ask('delete')
      await done(environment)
    }
  })

  const liveInSpiteOf = async (fault: Fault): Promise<void> => {
    const injections = STRUCK.map(struck =>
      proxy.inject(({ verb, resource }) => verb === 'watch' && resource === struck, fault, STRIKES),
    )
    try {
      await breakAll()
      await Promise.all([live(), live(), live()])
      const spared = STRUCK.filter((_, index) => injections[index]!.count === 0)
      assert.deepEqual(spared, [], 'The fault never struck them')
    } finally {
      for (const injection of injections) injection.remove()
    }
  }

  for (const [name, fault] of Object.entries(FAULTS))
    it(`lives go their way in spite of ${name}`, () => liveInSpiteOf(fault))

  // Alone: whoever is impatient is saved from other faults by it.
  it('lives go their way in spite of connections that died without a word', async () => {
    await operator.stop()
    await operator.start(IMPATIENT)
    await liveInSpiteOf({ watch: { kind: 'half-open', after: 1 } })
  })

  it(`an API server that is away for ${DOWN_MS / 1000} s is caught up with`, async () => {
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    await proxy.down()
    await sleep(DOWN_MS)
    await environment.ask('suspend', { suspended: true })
    await proxy.up()
    await done(environment)
    await live()
  })

  it('an API server that ended for 30 s is caught up with, though its history was compacted meanwhile', async function () {
    const history = etcdUrl() ?? skipBecause(this, 'SERVICE_TEST_ETCD_URL does not say where the history is')
    const apiServer =
      ClusterProcess.named('kube-apiserver') ??
      skipBecause(this, 'SERVICE_TEST_API_SERVER_PID_FILE names no process to end')
    const environments = await Promise.all([1, 2, 3].map(() => FakedEnvironment.prepare(faked)))
    await Promise.all(environments.map(each => each.ask('create')))
    await Promise.all(environments.map(done))
    const { resourceVersion } = await faked.store.list(environmentType)
    const relists = await metric('reflector_lists_total', 'reason="gone"')
    // Behind its back, so that what it saw last is from before.
    await proxy.down()
    await Promise.all(environments.map(each => each.ask('suspend', { suspended: true })))
    await apiServer.kill()
    try {
      await proxy.up()
      await compactHistory(history)
      assert.ok(await isForgotten(history, resourceVersion), 'What the operator saw last is still there')
      await sleep(ENDED_MS)
    } finally {
      apiServer.start()
    }
    await untilAnswered(() => faked.store.list(environmentType))
    await Promise.all(environments.map(done))
    // A running API server answers old versions from its memory, compacted or not: only a new one says that they are gone.
    assert.ok(
      (await metric('reflector_lists_total', 'reason="gone"')) > relists,
      'It was never told that its version is gone',
    )
    await live()
  })
})
