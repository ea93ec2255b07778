/** What the operator does inside servers that are well, and what it leaves. A session costs both sides; thousands of them are a load. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { conditionOf } from '../../crds/conditions.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const COUNT = 4
/** Of each server once an hour, at a time of its own: more than one by chance is once in thousands of runs. */
const BY_CHANCE = 1

describe('servers that are well', function () {
  this.timeout(120_000)
  let faked: FakedCluster
  let operator: OperatorProcess
  let environments: readonly FakedEnvironment[]

  before(async function () {
    faked = await fakedCluster(this)
    const { kubeconfig } = faked.cluster
    operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity: 'quiet' })
    await operator.start()
    environments = await Promise.all(Array.from({ length: COUNT }, () => FakedEnvironment.prepare(faked)))
    for (const environment of environments) await environment.ask('create')
    await allDone()
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    if (operator === undefined) return
    for (const environment of environments) await environment.ask('delete')
    await allDone()
    await operator.stop()
    await faked.assertSound()
  })

  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    for (const end = Date.now() + 60_000; !(await holds()); ) {
      assert.ok(Date.now() < end, `${what}\n${operator.output.slice(-3000)}`)
      await sleep(50)
    }
  }
  const allDone = (): Promise<void> =>
    until('all is done', async () => (await Promise.all(environments.map(it => it.isDone()))).every(Boolean))
  const allAre = (reason: string): Promise<void> =>
    until(`all are ${reason}`, async () => {
      const found = await Promise.all(environments.map(it => it.get()))
      return found.every(it => conditionOf(it?.status?.conditions, 'Ready')?.reason === reason)
    })
  const restart = async (): Promise<void> => {
    await operator.stop()
    await operator.start()
  }

  it('are believed after a restart of the operator, as kubelet says that they are well', async () => {
    const before = await faked.services.superuserSessions()
    assert.ok(before >= COUNT, 'nobody signed in when they were made')
    await restart()
    await sleep(5_000)
    const opened = (await faked.services.superuserSessions()) - before
    assert.ok(opened <= BY_CHANCE, `${opened} sessions were opened`)
    await allAre('Ready')
  })

  it('are not called on a node that is lost, and are taken up again when it is back', async () => {
    await faked.pods.loseNode()
    try {
      await allAre('NodeLost')
      const before = await faked.services.superuserSessions()
      await restart()
      await sleep(3_000)
      assert.equal((await faked.services.superuserSessions()) - before, 0)
      await allAre('NodeLost')
    } finally {
      await faked.pods.bringBackNode()
    }
    await allAre('Ready')
  })
})
