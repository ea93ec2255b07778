/** Of everything that make e2e ran, on both clusters: no operator deleted a claim that nobody had asked for. Runs when all has ended. */
import assert from 'node:assert/strict'
import { type AuditLine, AuditLog, auditLogOf } from '../../../testkit/kubernetes/audit-log.ts'
import { skipBecause } from '../../../testkit/skip-because.ts'
import { claimsDeletedUnasked, isDeletedByOperator } from '../claims-deleted-unasked.ts'

/** How long a log was when the run began, which tools/e2e.sh notes. */
const beginOf = (cluster: 'node' | 'api'): number =>
  Number(process.env[cluster === 'api' ? 'SERVICE_TEST_API_AUDIT_BEGIN' : 'SERVICE_TEST_AUDIT_BEGIN'])

describe('over the whole run', function () {
  this.timeout(300_000)
  // One cluster for both has one log.
  const clusters = auditLogOf('api') === auditLogOf('node') ? (['node'] as const) : (['node', 'api'] as const)
  for (const cluster of clusters)
    it(`no claim was deleted unasked: ${cluster === 'node' ? 'where pods run' : 'where they are played'}`, function () {
      const path = auditLogOf(cluster)
      if (path === undefined)
        return skipBecause(this, 'SERVICE_TEST_AUDIT_LOG does not name the audit log of the cluster')
      const begin = beginOf(cluster)
      assert.ok(Number.isSafeInteger(begin), 'Nobody noted how long the audit log was when the run began')
      const lines: AuditLine[] = []
      for (const line of new AuditLog(path, begin).each())
        if (line.resource === 'environments' || line.resource === 'persistentvolumeclaims') lines.push(line)
      const deleted = lines.filter(isDeletedByOperator).length
      console.log(`      operators deleted ${deleted} claims`)
      assert.ok(deleted > 0, 'No operator deleted any claim: nothing is proven')
      assert.deepEqual(claimsDeletedUnasked(lines), [])
    })
})
