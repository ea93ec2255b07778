/** Two operators, one of which leads: whoever goes or falls silent is followed by the other, and never writes again. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Lease } from '@kubernetes/client-node'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { type AuditLine, AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import type { Exchange, FaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { FakedEnvironment } from './faked-environment.ts'
import type { OperatorProcess } from './operator-process.ts'
import { proxiedOperator } from './proxied-operator.ts'

const LEASE: ObjectType<V1Lease> = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' }
/** From the release of the lease, or the death of its holder, to the next term. */
const RELEASED_MS = 2500
const DIED_MS = 17_000
const SILENT_MS = 30_000

interface Contender {
  readonly identity: string
  readonly proxy: FaultProxy
  readonly process: OperatorProcess
}

/** What it changed, since a number of calls; the lease aside, for which both contend. */
const changesOf = ({ proxy }: Contender, since = 0): string[] =>
  proxy.exchanges
    .slice(since)
    .filter(({ mutation }: Exchange) => mutation !== undefined)
    .map(({ verb, path }) => `${verb} ${path}`)

/** The same by the API server's own log. */
const changesIn = (lines: readonly AuditLine[], { identity }: Contender): string[] =>
  lines
    .filter(({ userAgent, verb, resource }) => {
      const reads = ['get', 'list', 'watch'].includes(verb)
      return (
        userAgent.startsWith('svc-operator/') && userAgent.endsWith(` ${identity}`) && !reads && resource !== 'leases'
      )
    })
    .map(({ verb, resource, namespace, name }) => `${verb} ${resource} ${namespace}/${name}`)

describe('two operators', function () {
  this.timeout(180_000)
  let faked: FakedCluster
  const contenders: Contender[] = []

  before(async function () {
    faked = await fakedCluster(this)
    for (const identity of ['one', 'two']) {
      const { proxy, operator: process } = await proxiedOperator(faked, identity)
      contenders.push({ identity, proxy, process })
      process.launch()
    }
  })
  beforeEach(async () => {
    for (const { process } of contenders) if (!process.running) await process.start()
  })
  after(async () => {
    for (const { process, proxy } of contenders) {
      process.signal('SIGCONT')
      await process.stop('SIGKILL')
      await proxy.stop()
    }
    if (contenders.length > 0) await faked.assertSound()
  })

  const holder = async (): Promise<string> => {
    const lease = await faked.cluster.objects.get(LEASE, { namespace: faked.namespace, name: 'svc-operator' })
    return lease?.spec?.holderIdentity ?? ''
  }
  /** Waits until somebody holds the lease who is not this one. @returns who, and when that was seen */
  const led = async (notBy = ''): Promise<{ leader: Contender; other: Contender; at: number }> => {
    const until = Date.now() + 60_000
    for (;;) {
      const name = await holder()
      const leader = contenders.find(({ identity }) => identity === name)
      if (leader !== undefined && name !== notBy)
        return { leader, other: contenders.find(contender => contender !== leader)!, at: performance.now() }
      assert.ok(Date.now() < until, `The lease is held by "${name}"`)
      await sleep(10)
    }
  }
  const outputs = (): string => contenders.map(({ process }) => process.output.slice(-2000)).join('\n--\n')
  const done = (environment: FakedEnvironment): Promise<void> => environment.done({ tell: outputs })
  const create = async (): Promise<FakedEnvironment> => {
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    await done(environment)
    return environment
  }

  it('only the one that leads writes', async () => {
    const { other } = await led()
    await create()
    assert.deepEqual(changesOf(other), [])
  })

  it('the leader is told to stop: the other one leads within 2.5 s of its letting go, and nothing is done twice', async () => {
    const { leader, other } = await led()
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    // Its last write of the lease, after which it holds it no more: seen on its way, since the other one may take it at once.
    let releasedAt: number | undefined
    const seen = leader.proxy.onAnswer(
      ({ resource, mutation, verb }) => resource === 'leases' && mutation === undefined && verb !== 'get',
      async () => {
        if ((await holder()) !== leader.identity) releasedAt ??= performance.now()
        return 'pass'
      },
    )
    leader.process.signal('SIGTERM')
    while ((await holder()) !== other.identity) await sleep(10)
    seen.remove()
    // A lease that is taken over without having been let go was waited for.
    assert.ok(releasedAt !== undefined, `The leader never let go of the lease:\n${outputs()}`)
    const tookMs = performance.now() - releasedAt
    assert.ok(tookMs <= RELEASED_MS, `${Math.round(tookMs)} ms from the release to the next term`)
    console.log(`      ${Math.round(tookMs)} ms`)
    assert.equal(await leader.process.ended(), 0, leader.process.output.slice(-2000))
    await done(environment)
  })

  it('the leader is killed: the other one leads within 17 s', async () => {
    const { leader } = await led()
    await leader.process.stop('SIGKILL')
    const diedAt = performance.now()
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create')
    const { at } = await led(leader.identity)
    assert.ok(at - diedAt <= DIED_MS, `${Math.round(at - diedAt)} ms from its death to the next term`)
    console.log(`      ${Math.round(at - diedAt)} ms`)
    await done(environment)
  })

  it('the leader sleeps for 30 s and wakes: it writes nothing any more', async () => {
    const environment = await create()
    const { leader, other } = await led()
    leader.process.signal('SIGSTOP')
    const sleepsAt = performance.now()
    await environment.ask('suspend', { suspended: true })
    await led(leader.identity)
    await done(environment)
    // Work that the sleeper knows nothing of yet: it would do it at once if it thought that it leads.
    await environment.ask('resume', { suspended: false })
    await done(environment)
    await sleep(Math.max(0, SILENT_MS - (performance.now() - sleepsAt)))
    const [before, beforeOther] = [leader.proxy.exchanges.length, other.proxy.exchanges.length]
    const path = auditLogOf('api')
    const log = path === undefined ? undefined : new AuditLog(path)
    leader.process.signal('SIGCONT')
    await environment.ask('suspend', { suspended: true })
    await done(environment)
    await sleep(3000)
    assert.deepEqual(changesOf(leader, before), [])
    assert.ok(changesOf(other, beforeOther).length > 0)
    if (log === undefined) console.log('      not proven by the audit log: SERVICE_TEST_API_AUDIT_LOG does not name it')
    else {
      const lines = await log.linesUntil(faked.cluster.objects)
      assert.deepEqual(changesIn(lines, leader), [])
      assert.ok(changesIn(lines, other).length > 0, 'The log is of another cluster')
    }
    // What it remembers is out of date: it ends, to be started anew.
    assert.equal(leader.process.running, false)
  })
})
