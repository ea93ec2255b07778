/** What an operator asks of the API server for an environment's life is counted, and may not grow unnoticed. */
import assert from 'node:assert/strict'
import { type CallBudget, creationCalls, deletionCalls, overBudget, underBudget } from '../../bench/call-budget.ts'
import { type AuditLine, AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { FakedEnvironment } from './faked-environment.ts'
import { OperatorProcess } from './operator-process.ts'

const ENVIRONMENTS = 6

describe('the calls of an environment’s life', function () {
  this.timeout(300_000)
  let path: string
  let faked: FakedCluster | undefined
  let operator: OperatorProcess | undefined
  const environments: FakedEnvironment[] = []

  before(async function () {
    const found = auditLogOf('api')
    if (found === undefined) return skipBecause(this, 'needs the audit log of the cluster (SERVICE_TEST_API_AUDIT_LOG)')
    path = found
    const there = (faked = await fakedCluster(this))
    const { cluster, namespace } = there
    operator = await OperatorProcess.create({ kubeconfig: cluster.kubeconfig, namespace, identity: 'counted' })
    await operator.start()
    for (let i = 0; i < ENVIRONMENTS; i++) environments.push(await FakedEnvironment.prepare(there))
  })
  after(async () => {
    await operator?.stop()
    await faked?.assertSound()
  })

  /** Everything that was asked while all of them did something. */
  const during = async (act: (environment: FakedEnvironment) => Promise<void>): Promise<readonly AuditLine[]> => {
    const log = new AuditLog(path)
    const tell = (): string => operator!.output.slice(-2000)
    await Promise.all(
      environments.map(async environment => {
        await act(environment)
        await environment.done({ tell })
      }),
    )
    return log.linesUntil(faked!.cluster.objects)
  }

  const judge = (made: Partial<CallBudget>): void => {
    assert.deepEqual(overBudget(made), [], JSON.stringify(made, undefined, 2))
    const hint = underBudget(made)
    if (hint !== undefined) console.log(hint)
  }

  const counted = () => ({ environments: ENVIRONMENTS, projects: ENVIRONMENTS, namespace: faked!.namespace })

  it('stay within bench/call-budget.json when they are created', async () => {
    const made = creationCalls(await during(environment => environment.ask('create')), counted())
    assert.equal(made.create['patch environments'], 1, `Nothing was counted: ${JSON.stringify(made)}`)
    judge(made)
  })

  it('and when they are deleted', async () => {
    const made = deletionCalls(await during(environment => environment.ask('delete')), counted())
    assert.equal(made.delete['create deletionrecords'], 1, `Nothing was counted: ${JSON.stringify(made)}`)
    judge(made)
  })
})
