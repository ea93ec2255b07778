/** Of everything that make e2e ran, on all clusters: no operator deleted a claim that nobody had asked for. Runs when all has ended. */
import assert from 'node:assert/strict'
import { type AuditLine, AuditLog, auditLogOf, parseAuditPlace } from '../../../testkit/kubernetes/audit-log.ts'
import { skipBecause } from '../../../testkit/skip-because.ts'
import { claimsDeletedUnasked, isDeletedByOperator } from '../claims-deleted-unasked.ts'

interface Log {
  readonly title: string
  readonly path: string | undefined
  /** Where it ended when the run began, which tools/e2e.sh notes. */
  readonly begin: string | undefined
}
const NODE: Log = {
  title: 'where pods run',
  path: auditLogOf('node'),
  begin: process.env['SERVICE_TEST_AUDIT_BEGIN'],
}
const API: Log = {
  title: 'where they are played',
  path: auditLogOf('api'),
  begin: process.env['SERVICE_TEST_API_AUDIT_BEGIN'],
}
const SECOND_API: Log = {
  title: 'on the second cluster where they are played',
  path: process.env['SERVICE_TEST_SECOND_API_AUDIT_LOG'],
  begin: process.env['SERVICE_TEST_SECOND_API_AUDIT_BEGIN'],
}

describe('over the whole run', function () {
  this.timeout(300_000)
  // One cluster for both has one log.
  const logs = API.path === NODE.path ? [NODE] : [NODE, API]
  if (process.env['SERVICE_TEST_SECOND_API_KUBECONFIG'] !== undefined) logs.push(SECOND_API)
  for (const { title, path, begin } of logs)
    it(`no claim was deleted unasked: ${title}`, function () {
      if (path === undefined)
        return skipBecause(this, 'SERVICE_TEST_AUDIT_LOG does not name the audit log of the cluster')
      const lines: AuditLine[] = []
      for (const line of new AuditLog(path, parseAuditPlace(begin)).each())
        if (line.resource === 'environments' || line.resource === 'persistentvolumeclaims') lines.push(line)
      const deleted = lines.filter(isDeletedByOperator).length
      console.log(`      operators deleted ${deleted} claims`)
      assert.ok(deleted > 0, 'No operator deleted any claim: nothing is proven')
      assert.deepEqual(claimsDeletedUnasked(lines), [])
    })
})
