/** What the judgement of an audit log says to planted lines; and, at the end of a run, what it says to the run's own log. */
import assert from 'node:assert/strict'
import { instanceName } from '../../crds/metadata.ts'
import { type AuditLine, AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { claimsDeletedUnasked } from './claims-deleted-unasked.ts'

const logs = (['api', 'node'] as const).flatMap(cluster => {
  const path = auditLogOf(cluster)
  return path === undefined ? [] : [new AuditLog(path)]
})

// Of the whole run, whatever else runs in it: this file is loaded before the first test and heard after the last.
after('no operator deleted a claim that nobody had asked for', function () {
  this.timeout(120_000)
  if (logs.length === 0) console.log('    not judged: no audit log is given (SERVICE_TEST_AUDIT_LOG)')
  for (const log of logs) assert.deepEqual(claimsDeletedUnasked(log.lines()), [])
})

describe('claims that an operator deleted unasked', () => {
  const ENVIRONMENT = 'org.project.main'
  const CLAIM = `${instanceName({ organizationId: 'org', projectId: 'project', environmentId: 'main' })}-0a1b2c3d`
  const line = (change: Partial<AuditLine>): AuditLine => ({
    user: 'system:serviceaccount:svc-system:svc-operator',
    userAgent: 'svc-operator/0.1.0',
    verb: 'delete',
    group: '',
    resource: 'persistentvolumeclaims',
    namespace: 'here',
    name: CLAIM,
    code: 200,
    at: 100,
    ...change,
  })
  const made = (change: Partial<AuditLine> = {}): AuditLine => line({ verb: 'patch', code: 201, at: 10, ...change })
  const asked = (change: Partial<AuditLine> = {}): AuditLine =>
    line({ user: 'ada', userAgent: 'kubectl', resource: 'environments', name: ENVIRONMENT, at: 50, ...change })
  const UNASKED = [`here/${CLAIM}`]
  const cases: readonly (readonly [why: string, lines: readonly AuditLine[], found: readonly string[]])[] = [
    ['its environment was asked to go first', [made(), asked(), line({})], []],
    ['the end of a request is logged late', [line({}), asked(), made()], []],
    ['its expiry asked', [made(), asked({ userAgent: 'svc-operator/0.1.0' }), line({})], []],
    ['all of the namespace were asked to go', [made(), asked({ verb: 'deletecollection', name: '' }), line({})], []],
    ['somebody else deleted it', [made(), line({ user: 'ada', userAgent: 'kubectl' })], []],
    ['it was refused', [made(), line({ code: 403 })], []],
    ['nobody asked', [made(), line({})], UNASKED],
    ['made before the log begins, and nobody asked', [line({})], UNASKED],
    ['on a test cluster only the agent tells the operator', [line({ user: 'kubernetes-admin' })], UNASKED],
    ['only the account tells the operator', [line({ userAgent: 'node' })], UNASKED],
    ['asked afterwards', [made(), line({}), asked({ at: 101 })], UNASKED],
    ['asking was refused', [made(), asked({ code: 422 }), line({})], UNASKED],
    ['another namespace was asked', [made(), asked({ namespace: 'there' }), line({})], UNASKED],
    ['another environment was asked', [made(), asked({ name: 'org.project.other' }), line({})], UNASKED],
    ['a predecessor of the same name was asked', [asked({ at: 5 }), made(), line({})], UNASKED],
    [
      'a namespace that goes asks nothing',
      [
        made(),
        asked({
          verb: 'deletecollection',
          name: '',
          user: 'system:serviceaccount:kube-system:namespace-controller',
        }),
        line({}),
      ],
      UNASKED,
    ],
    ['a whole collection at once', [made(), asked(), line({ verb: 'deletecollection', name: '' })], ['here/*']],
  ]
  for (const [why, lines, found] of cases)
    it(`${found.length === 0 ? 'none' : 'one'}: ${why}`, () => assert.deepEqual(claimsDeletedUnasked(lines), found))
})
