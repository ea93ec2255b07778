/** What an operator asks of the API server for an environment's life is counted, and may not grow unnoticed. */
import assert from 'node:assert/strict'
import { type CallBudget, creationCalls, deletionCalls, overBudget, underBudget } from '../../bench/call-budget.ts'
import { type AuditLine, AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const ENVIRONMENTS = 6
/** Where a machine is so slow that a pod is late, the operator looks for it: what it asks too often it asks every time. */
const TRIES = 3

describe('the calls of an environment’s life', function () {
  this.timeout(600_000)
  let path: string
  let faked: FakedCluster
  let operator: OperatorProcess | undefined

  before(async function () {
    const found = auditLogOf('api')
    if (found === undefined) return skipBecause(this, 'needs the audit log of the cluster (SERVICE_TEST_API_AUDIT_LOG)')
    path = found
    faked = await fakedCluster(this)
    const { cluster, namespace } = faked
    operator = await OperatorProcess.create({ kubeconfig: cluster.kubeconfig, namespace, identity: 'counted' })
    await operator.start()
  })
  after(async function () {
    if (operator === undefined) return
    await operator.stop()
    await faked.assertSound()
  })

  /** Everything that was asked while all of them did something. */
  const during = async (
    environments: readonly FakedEnvironment[],
    act: (environment: FakedEnvironment) => Promise<void>,
  ): Promise<readonly AuditLine[]> => {
    const log = new AuditLog(path)
    const tell = (): string => operator!.output.slice(-2000)
    await Promise.all(
      environments.map(async environment => {
        await act(environment)
        await environment.done({ tell })
      }),
    )
    return log.linesUntil(faked.cluster.objects)
  }

  /** The calls of so many lives. */
  const lives = async (): Promise<CallBudget> => {
    const environments: FakedEnvironment[] = []
    for (let i = 0; i < ENVIRONMENTS; i++) environments.push(await FakedEnvironment.prepare(faked))
    const counted = { environments: ENVIRONMENTS, projects: ENVIRONMENTS, namespace: faked.namespace }
    const created = await during(environments, environment => environment.ask('create'))
    const deleted = await during(environments, environment => environment.ask('delete'))
    return { ...creationCalls(created, counted), ...deletionCalls(deleted, counted) }
  }

  it('stay within bench/call-budget.json, to create and to delete', async () => {
    for (let tries = 1; ; tries++) {
      const made = await lives()
      // Whatever is not counted is within any budget.
      assert.equal(made.create['patch environments'], 1, JSON.stringify(made))
      assert.equal(made.project['patch serviceaccounts'], 1, JSON.stringify(made))
      assert.equal(made.delete['create deletionrecords'], 1, JSON.stringify(made))
      const over = overBudget(made)
      if (over.length > 0 && tries < TRIES) continue
      assert.deepEqual(over, [], JSON.stringify(made, undefined, 2))
      const hint = underBudget(made)
      if (hint !== undefined) console.log(hint)
      return
    }
  })
})
