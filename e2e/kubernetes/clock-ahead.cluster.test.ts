/** An operator on a machine whose clock is wrong: expiry is judged by the API server's. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const MINUTE = 60_000
const CLOCK_AHEAD = join(import.meta.dirname, '../../testkit/clock-ahead.ts')

describe('an operator whose clock is fifty minutes ahead', function () {
  this.timeout(120_000)
  let faked: FakedCluster
  let operator: OperatorProcess

  before(async function () {
    faked = await fakedCluster(this)
    const { kubeconfig } = faked.cluster
    const environment = { NODE_OPTIONS: `--import ${CLOCK_AHEAD}` }
    const options = { kubeconfig, namespace: faked.namespace, identity: 'ahead', environment }
    operator = await OperatorProcess.create(options)
    await operator.start()
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    await operator?.stop()
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
    await faked?.assertSound()
  })

  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    for (const end = Date.now() + 60_000; !(await holds()); ) {
      assert.ok(Date.now() < end, `${what}\n${operator.output.slice(-3000)}`)
      await sleep(50)
    }
  }
  const expiresIn = (ms: number): { readonly expiresAt: string } => ({
    expiresAt: new Date(Date.now() + ms).toISOString(),
  })

  it('sweeps no preview before its time, and each after it', async () => {
    const ahead = Math.abs(Date.parse(/"time":"([^"]+)"/.exec(operator.output)?.[1] ?? '') - Date.now())
    assert.ok(ahead > 45 * MINUTE, 'its clock is right')
    const environment = await FakedEnvironment.prepare(faked)
    await environment.ask('create', { kind: 'preview', ...expiresIn(20 * MINUTE) })
    await until('created', () => environment.isDone())
    await operator.stop()
    await operator.start()
    await sleep(2_000)
    const kept = await environment.get()
    assert.equal(kept?.status?.phase, 'ready')
    assert.equal(kept.metadata.deletionTimestamp, undefined)
    await environment.ask('resume', expiresIn(-2 * MINUTE))
    await until('swept', async () => (await environment.get()) === undefined)
  })
})
