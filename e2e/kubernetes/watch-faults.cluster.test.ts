/** What the operator watches breaks in every way that networks and servers know: every environment gets where it should be. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { sized } from '../../testkit/full.ts'
import { type Fault, type FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { type FakedCluster, FakedEnvironment, fakedCluster } from './faked-cluster.ts'
import type { OperatorProcess } from './operator-process.ts'
import { proxiedOperator } from './proxied-operator.ts'

/** Far above what a reflector's back-off adds. */
const DEADLINE_MS = 120_000
/** How often a fault strikes before the network is well again. */
const STRIKES = 12
const DOWN_MS = sized(10_000, 30_000)

const FAULTS: Readonly<Record<string, Fault>> = {
  'connections that are reset': { watch: { kind: 'reset', after: 1 } },
  'streams cut within a line': { watch: { kind: 'cut', afterBytes: 700 } },
  'lines that are half there': { watch: { kind: 'truncated', after: 1 } },
  'lines that are no JSON': { watch: { kind: 'garbage', after: 1 } },
  'versions that are gone, told in the stream': { watch: { kind: 'gone', after: 1 } },
  'streams that end at once': { watch: { kind: 'closed', after: 0 } },
  'events that come twice': { watch: { kind: 'duplicated' } },
  'events that come late': { watch: { kind: 'delayed', ms: 500 } },
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
    await operator.start()
  })
  after(async () => {
    if (!started) return
    const code = await operator.stop()
    await proxy.stop()
    assert.equal(code, 0, operator.output.slice(-3000))
    await faked.assertSound()
  })
  // Whatever broke: the same process is there all the time.
  afterEach(() => assert.ok(!started || operator.running, operator.output.slice(-3000)))

  const done = async (environment: FakedEnvironment): Promise<void> => {
    const until = Date.now() + DEADLINE_MS
    while (!(await environment.isDone())) {
      const status = JSON.stringify((await environment.get())?.status)
      assert.ok(Date.now() < until, `Not done: ${status}\n${operator.output.slice(-3000)}`)
      await sleep(50)
    }
  }

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
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(operator.metricsUrl)).text()
    const values = [...text.matchAll(new RegExp(`^${name}(?:{[^}]*})? ([0-9.e+]+)$`, 'gm'))].map(found =>
      Number(found[1]),
    )
    assert.ok(values.length > 0, `No metric ${name}`)
    return values.reduce((sum, value) => sum + value, 0)
  }

  it('undisturbed, it misses nothing', async () => {
    await Promise.all([live(), live(), live()])
    assert.equal(await metric('reflector_missed_events_total'), 0)
  })

  for (const [name, fault] of Object.entries(FAULTS))
    it(`lives go their way in spite of ${name}`, async () => {
      const injection = proxy.inject(({ verb }) => verb === 'watch', fault, STRIKES)
      try {
        // Watches that were open before know nothing of it: they are broken once.
        await proxy.down()
        await proxy.up()
        await Promise.all([live(), live(), live()])
        assert.ok(injection.count > 0, 'The fault never struck')
      } finally {
        injection.remove()
      }
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
})
