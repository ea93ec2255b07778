import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Registry } from 'prom-client'
import { apiCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { silentLog } from '../log/log.ts'
import { clusterAccess } from './cluster-access.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { type LeaseElector, startLeaseElector } from './lease-elector.ts'
import { watchObjects } from './watch-objects.ts'

/** A fifth of what the product uses. */
const TIMINGS = { durationSeconds: 3, renewDeadlineMs: 2_000, retryMs: 400 }

interface Said {
  readonly what: string
  readonly at: number
  readonly leading?: boolean
  readonly began?: number
}

/** A process of testkit/kubernetes/lease-child.ts. */
interface Contender {
  readonly identity: string
  readonly said: Said[]
  readonly process: ChildProcess
  until(what: string, after?: number): Promise<Said>
}

describe('startLeaseElector on an API server', function () {
  this.timeout(90_000)
  let cluster: TestCluster
  let namespace: string
  let children: Contender[] = []
  before(async () => {
    cluster = await apiCluster()
  })
  beforeEach(async () => {
    namespace = await cluster.namespace('kube')
    await cluster.objects.create(
      { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
      { metadata: { name: 'written', namespace } },
    )
  })
  afterEach(() => {
    for (const { process } of children.splice(0)) process.kill('SIGKILL')
    children = []
  })

  const contender = (identity: string, timings: object = TIMINGS): Contender => {
    const child = spawn(
      process.execPath,
      [
        join(import.meta.dirname, '../../testkit/kubernetes/lease-child.ts'),
        cluster.kubeconfig,
        namespace,
        identity,
        JSON.stringify(timings),
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const said: Said[] = []
    let wake: () => void = () => undefined
    createInterface({ input: child.stdout }).on('line', line => {
      said.push(JSON.parse(line) as Said)
      wake()
    })
    const one: Contender = {
      identity,
      said,
      process: child,
      until: async (what, after = 0) => {
        for (;;) {
          const found = said.find(entry => entry.what === what && entry.at > after)
          if (found !== undefined) return found
          await new Promise<void>(resolve => (wake = resolve))
        }
      },
    }
    children.push(one)
    return one
  }

  /** Who wrote, in the order of the API server, from the beginning on: each once as long as nobody else did. */
  const writers = async (enough: () => boolean): Promise<string[]> => {
    const seen: string[] = []
    const abort = new AbortController()
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const list = await cluster.api.call<{ metadata: { resourceVersion: string } }>({ method: 'GET', path })
    const follow = (async () => {
      for await (const event of watchObjects(cluster.api, path, {
        from: list.metadata.resourceVersion,
        signal: abort.signal,
      })) {
        if (event.type === 'bookmark') continue
        const { by } = (event.object as KubernetesObject & { data?: { by?: string } }).data ?? {}
        if (by !== undefined && seen.at(-1) !== by) seen.push(by)
      }
    })()
    while (!enough()) await new Promise(resolve => setTimeout(resolve, 20))
    abort.abort()
    await follow
    return seen
  }

  const local = async (identity: string, kubeconfig = cluster.kubeconfig): Promise<LeaseElector> =>
    startLeaseElector({
      access: await clusterAccess(kubeconfig),
      namespace,
      name: 'contended',
      identity,
      userAgent: `${identity}/test`,
      log: silentLog,
      registry: new Registry(),
      ...TIMINGS,
    })

  it('one leads, the other waits; a release hands over, and the released one refuses', async () => {
    const [one, two] = [await local('one'), await local('two')]
    const first = await Promise.race([one.elected.then(() => one), two.elected.then(() => two)])
    const second = first === one ? two : one
    first.mustLead()
    assert.throws(() => second.mustLead(), /Does not hold the lease/)
    const releasing = performance.now()
    await first.stop()
    assert.throws(() => first.mustLead(), /Does not hold the lease/)
    await second.elected
    console.log(
      `      handed over in ${Math.round(performance.now() - releasing)} ms, retrying every ${TIMINGS.retryMs} ms`,
    )
    second.mustLead()
    await second.stop()
  })

  it('with the product’s own times, a release hands over while the other retries', async () => {
    const [one, two] = [contender('one', {}), contender('two', {})]
    const first = await Promise.race([one.until('elected').then(() => one), two.until('elected').then(() => two)])
    const second = first === one ? two : one
    await second.until('started')
    first.process.kill('SIGTERM')
    const released = await first.until('stopped')
    const elected = await second.until('elected')
    console.log(`      handed over ${Math.round(elected.at - released.at)} ms after the release`)
  })

  it('a lease that is deleted while it is held is made again, and nobody else leads', async () => {
    const one = await local('one')
    await one.elected
    const two = await local('two')
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/contended`
    await cluster.api.call({ method: 'DELETE', path })
    const holder = async (): Promise<string | undefined> => {
      for (;;) {
        try {
          return (await cluster.api.call<{ spec: { holderIdentity?: string } }>({ method: 'GET', path })).spec
            .holderIdentity
        } catch {
          await new Promise(resolve => setTimeout(resolve, 20))
        }
      }
    }
    // Whoever was faster; the other one must know.
    if ((await holder()) === 'one') {
      await new Promise(resolve => setTimeout(resolve, TIMINGS.retryMs * 2))
      one.mustLead()
      assert.equal(two.isLeading(), false)
    } else {
      await one.lost
      assert.equal(one.isLeading(), false)
    }
    await Promise.all([one.stop(), two.stop()])
  })

  it('while it cannot renew it refuses, and goes on afterwards when nobody else led meanwhile', async () => {
    const proxy = await startFaultProxy(cluster.kubeconfig)
    const one = await local('one', proxy.kubeconfig)
    try {
      await one.elected
      one.mustLead()
      await proxy.down()
      await until(() => !one.isLeading())
      assert.throws(() => one.mustLead(), /Does not hold the lease/)
      await proxy.up()
      await until(() => one.isLeading())
      const two = await local('two')
      await one.stop()
      await two.elected
      await two.stop()
    } finally {
      await proxy.stop()
    }
  })

  it('while it cannot renew somebody else leads, and it learns that it lost', async () => {
    const proxy = await startFaultProxy(cluster.kubeconfig)
    const one = await local('one', proxy.kubeconfig)
    try {
      await one.elected
      const two = await local('two')
      await proxy.down()
      await two.elected
      assert.equal(one.isLeading(), false)
      await two.stop()
      // It could have the lease back, and yet another one led.
      await proxy.up()
      assert.match(await one.lost, /was taken by/)
      assert.equal(one.isLeading(), false)
      await one.stop()
    } finally {
      await proxy.stop()
    }
  })

  it('a main loop that is blocked for longer than the lease lasts keeps it', async () => {
    const one = contender('one')
    await one.until('elected')
    const two = contender('two')
    await two.until('started')
    one.process.stdin?.write(`block ${TIMINGS.durationSeconds * 1000 + 2_000}\n`)
    const { leading } = await one.until('blocked')
    assert.equal(leading, true)
    assert.deepEqual(
      two.said.filter(({ what }) => what === 'elected'),
      [],
    )
  })

  it('a killed leader is followed after its term', async () => {
    const one = contender('one')
    await one.until('elected')
    const two = contender('two')
    await two.until('started')
    const killed = one.said.at(-1)!.at
    one.process.kill('SIGKILL')
    const elected = await two.until('elected')
    console.log(
      `      followed after ${Math.round(elected.at - killed)} ms, its term being ${TIMINGS.durationSeconds * 1000} ms`,
    )
  })

  it('a leader that was stopped for longer than its term writes nothing after waking, and ends', async () => {
    const [one, two] = [contender('one'), contender('two')]
    let round = 0
    const order = writers(() => round > 0)
    const first = await Promise.race([one.until('wrote').then(() => one), two.until('wrote').then(() => two)])
    const second = first === one ? two : one
    first.process.kill('SIGSTOP')
    const { at } = await second.until('wrote')
    const ended = once(first.process, 'exit')
    first.process.kill('SIGCONT')
    await second.until('wrote', at + 500)
    const [code] = (await ended) as [number | null]
    assert.equal(code, 1)
    await second.until('wrote', second.said.at(-1)!.at)
    round = 1
    assert.deepEqual(await order, [first.identity, second.identity])
  })

  it('never do two lead at once, however they are killed, stopped and released', async () => {
    const [signals, ended] = [
      ['SIGKILL', 'SIGTERM', 'SIGSTOP', 'SIGTERM', 'SIGSTOP', 'SIGKILL'] as const,
      [] as Contender[],
    ]
    for (let n = 0; n < 3; n++) contender(`p${n}`)
    let leader: Contender | undefined
    let done = false
    const order = writers(() => done)
    for (const [n, signal] of signals.entries()) {
      const others = children.filter(one => !ended.includes(one) && one !== leader)
      leader = await Promise.race(others.map(one => one.until('wrote').then(() => one)))
      await new Promise(resolve => setTimeout(resolve, 300))
      ended.push(leader)
      leader.process.kill(signal)
      contender(`q${n}`)
    }
    const last = await Promise.race(
      children.filter(one => !ended.includes(one)).map(one => one.until('wrote').then(() => one)),
    )
    // Those that were stopped wake while somebody else leads.
    for (const one of ended) one.process.kill('SIGCONT')
    await last.until('wrote', last.said.at(-1)!.at + 1_000)
    done = true
    assert.deepEqual(
      await order,
      [...ended, last].map(({ identity }) => identity),
    )
  })
})

const until = async (holds: () => boolean): Promise<void> => {
  for (const end = Date.now() + 20_000; !holds(); await new Promise(resolve => setTimeout(resolve, 10)))
    assert.ok(Date.now() < end, `not within 20 s: ${String(holds)}`)
}
