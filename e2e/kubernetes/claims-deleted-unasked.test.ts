/** What the judgement of an audit log says to planted lines. */
import assert from 'node:assert/strict'
import { instanceName } from '../../crds/metadata.ts'
import type { AuditLine } from '../../testkit/kubernetes/audit-log.ts'
import { claimsDeletedUnasked } from './claims-deleted-unasked.ts'

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
  const born = (change: Partial<AuditLine> = {}): AuditLine => asked({ verb: 'create', code: 201, at: 3, ...change })
  const UNASKED = [`here/${CLAIM}`]
  const cases: readonly (readonly [why: string, lines: readonly AuditLine[], found: readonly string[]])[] = [
    ['its environment was asked to go first', [made(), asked(), line({})], []],
    ['the end of a request is logged late', [line({}), asked(), made()], []],
    ['asked while the operator was still building', [born(), asked({ at: 5 }), made(), line({})], []],
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
    ['its predecessor was asked to go', [born({ at: 1 }), asked({ at: 2 }), born(), made(), line({})], UNASKED],
    [
      'made by kubectl, and its predecessor was asked',
      [asked({ at: 2 }), born({ verb: 'patch' }), made(), line({})],
      UNASKED,
    ],
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
