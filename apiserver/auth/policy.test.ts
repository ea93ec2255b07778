import assert from 'node:assert/strict'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { CREDENTIAL_KINDS, ROLES, type Role } from '../../lib/model/credential.ts'
import type { OperationId } from '../../testkit/api-client.ts'
import type { Principal } from '../commands/call.ts'
import { ROUTES } from '../contract/routes.ts'
import { bindRoutes, type Serving } from '../http/bind-routes.ts'
import { HANDLERS } from '../routes/index.ts'
import { authorize, authorizeProduction } from './authorize.ts'
import { POLICY, policyRowOf } from './policy.ts'

const principal = (role: Role | undefined, kind: Principal['kind'] = 'personal'): Principal => ({
  kind,
  role,
  subject: 'user:usr_me',
  userId: 'usr_me',
  credentialId: 'tok_me',
  isOperator: false,
})

const outcome = (run: () => void): string => {
  try {
    run()
    return 'yes'
  } catch (error) {
    if (error instanceof DomainError) return error.code
    throw error
  }
}

/** What each role may call, written out by hand: viewer, developer, admin, owner, stranger. */
const MATRIX: Readonly<Record<OperationId, string>> = {
  getHealth: 'yyyyy',
  getReadiness: 'yyyyy',
  listTokens: 'yyyyy',
  createToken: 'yyyyy',
  revokeToken: 'yyyyy',
  listOrganizations: 'yyyyy',
  putOrganization: 'nnyyy', // a stranger may create one; the command judges that
  getOrganization: 'yyyy-',
  listMembers: 'yyyy-',
  putMember: 'nnyy-',
  removeMember: 'nnyy-',
  listProjects: 'yyyy-',
  putProject: 'nyyy-',
  getProject: 'yyyy-',
  deleteProject: 'nnyy-',
  createEnvironment: 'nyyy-',
  listEnvironments: 'yyyy-',
  getEnvironment: 'yyyy-',
  updateEnvironment: 'nyyy-',
  suspendEnvironment: 'nyyy-',
  resumeEnvironment: 'nyyy-',
  rotateCredentials: 'nyyy-',
  deleteEnvironment: 'nyyy-',
  renewEnvironment: 'nyyy-',
  getConnection: 'nyyy-',
  getUsage: 'yyyy-',
  getOperation: 'yyyy-',
  listOperations: 'yyyy-',
  listAuditEvents: 'nnyy-',
}
const LETTERS = { y: 'yes', n: 'forbidden', '-': 'organization_not_found' } as const

describe('the policy table', () => {
  for (const [operationId, letters] of Object.entries(MATRIX))
    it(`lets the right roles call ${operationId}`, () => {
      const row = policyRowOf(ROUTES[operationId as OperationId])
      const callers = [...ROLES, undefined].map(role => principal(role))
      const expected = letters.split('').map(letter => LETTERS[letter as keyof typeof LETTERS])
      if (row.role === 'public') return
      assert.deepEqual(
        callers.map(caller => outcome(() => authorize(caller, row))),
        expected,
      )
    })

  it('has a row for every route, and no row that no route names', () => {
    for (const route of Object.values(ROUTES)) policyRowOf(route)
    const named = new Set<string>(Object.values(ROUTES).map(route => route.policy))
    assert.deepEqual(
      Object.keys(POLICY).filter(group => !named.has(group)),
      [],
    )
  })

  it('stops the router from being built for a route without a row', () => {
    const serving = {} as Serving<never>
    const { getProject } = ROUTES
    const build = (policy: string) => () =>
      bindRoutes(HANDLERS as never, serving, { routes: { getProject: { ...getProject, policy } }, policy: POLICY })
    assert.throws(build('project.reed'), /getProject names no row of the policy table/)
    assert.throws(build('toString'), /names no row/)
    build('organization.read')()
  })

  it('refuses kinds of credentials that a row does not list, before anything about tenants is told', () => {
    for (const group of Object.values(POLICY)) {
      if (group.role === 'public') continue
      for (const kind of CREDENTIAL_KINDS)
        if (!group.credentials.includes(kind))
          assert.equal(
            outcome(() => authorize(principal(undefined, kind), group)),
            'credential_not_allowed',
          )
    }
  })

  it('gives agents and keys no way to tokens, members or the organization itself', () => {
    for (const id of [
      'createToken',
      'listTokens',
      'revokeToken',
      'putMember',
      'removeMember',
      'putOrganization',
    ] as const) {
      const row = policyRowOf(ROUTES[id])
      assert.equal(row.level, 'none')
      assert.ok(!row.credentials.includes('agent') && !row.credentials.includes('api_key'), id)
    }
  })

  it('lets members remove themselves, by subject or id, and nobody else', () => {
    const row = policyRowOf(ROUTES.removeMember)
    for (const [subject, expected] of [
      ['user:usr_me', 'yes'],
      ['usr_me', 'yes'],
      ['user:usr_you', 'forbidden'],
      ['', 'forbidden'],
    ] as const)
      assert.equal(
        outcome(() => authorize(principal('viewer'), row, subject)),
        expected,
      )
    assert.equal(
      outcome(() => authorize(principal(undefined), row, 'user:usr_me')),
      'organization_not_found',
    )
  })

  it('guards production of a protected project, and only that', () => {
    const may = (role: Role, kind: 'production' | 'staging', protectProduction: boolean): string =>
      outcome(() => authorizeProduction(principal(role), { kind, protectProduction }))
    assert.equal(may('developer', 'production', true), 'forbidden')
    assert.equal(may('admin', 'production', true), 'yes')
    assert.equal(may('developer', 'production', false), 'yes')
    assert.equal(may('developer', 'staging', true), 'yes')
  })
})
