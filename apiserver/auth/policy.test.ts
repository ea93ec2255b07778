import assert from 'node:assert/strict'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { CREDENTIAL_KINDS, ROLES, type Role } from '../../lib/model/credential.ts'
import { type Level, parseScope, type Scope, type Target } from '../../lib/model/scope.ts'
import { COLUMNS, type Column, doesReach, MATRIX, OIDC_COLUMNS, SCOPES } from '../../testkit/authorization-matrix.ts'
import type { Principal } from '../commands/call.ts'
import { ROUTES } from '../contract/routes.ts'
import { bindRoutes, type Serving } from '../http/bind-routes.ts'
import { HANDLERS } from '../routes/index.ts'
import { authorize, authorizeProduction, requireRole } from './authorize.ts'
import { POLICY, policyRowOf } from './policy.ts'

const ORG = { organizationId: 'acme' }
const ENV: Target = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }
const TARGETS = {
  self: undefined,
  organization: ORG,
  project: { ...ORG, projectId: 'shop' },
  environment: ENV,
} as const

const principal = (role: Role | undefined, kind: Principal['kind'] = 'personal', scopes?: Scope[]): Principal => ({
  kind,
  role,
  subject: 'user:usr_me',
  userId: 'usr_me',
  credentialId: 'tok_me',
  isOperator: false,
  scopes,
})

/** As the authenticator makes it: never an operator. */
const ssoOwner: Principal = { ...principal('owner', 'session'), boundTo: 'acme' }

const callerOf = (column: Column): Principal => {
  const [kind, level] = column.split(':') as [string, (Level | 'elsewhere') | undefined]
  if (kind === 'key') return principal('admin', 'api_key', [{ ...ORG, level: level as Level }])
  if (kind === 'sso') return level === undefined ? ssoOwner : { ...ssoOwner, role: undefined, boundTo: 'elsewhere' }
  if (kind === 'session') return { ...principal('owner', 'session'), isOperator: true }
  if (kind === 'agent') return principal('owner', 'agent', [{ level: level as Level }])
  return principal(ROLES.find(role => role === kind))
}

const outcome = (run: () => void): string => {
  try {
    run()
    return 'yes'
  } catch (error) {
    if (error instanceof DomainError) return error.code
    throw error
  }
}

describe('the policy table', () => {
  for (const line of MATRIX) {
    const { operationId, verdicts, byOidc, about } = line
    const row = policyRowOf(ROUTES[operationId])
    it(`lets the right callers call ${operationId}`, () => {
      const target = TARGETS[about]
      assert.deepEqual(
        Object.fromEntries(COLUMNS.map(each => [each, outcome(() => authorize(callerOf(each), row, { target }))])),
        verdicts,
      )
    })

    it(`lets the right people of an identity provider call ${operationId}`, () => {
      for (const column of OIDC_COLUMNS) {
        // The one is refused before the table is asked, the other by the command: by HTTP they are in authorization-by-oidc.test.ts.
        if (byOidc[column] === 'builtin_login_disabled') continue
        if (operationId === 'putOrganization' && column === 'oidc:stranger') continue
        const caller = principal(
          ROLES.find(role => column === `oidc:${role}`),
          'oidc',
        )
        assert.equal(
          outcome(() => authorize(caller, row, { target: TARGETS[about] })),
          byOidc[column],
          column,
        )
      }
    })

    if (row.credentials.includes('agent') && about !== 'self')
      it(`keeps agents’ scopes at ${operationId}`, () => {
        for (const text of SCOPES) {
          const scope = parseScope(text.replace('ORG', 'acme').replace('PROJECT', 'shop').replace('ENV', 'main'))!
          const agent = principal('owner', 'agent', [scope])
          assert.equal(
            outcome(() => authorize(agent, row, { target: TARGETS[about] })),
            doesReach(line, text) ? 'yes' : 'insufficient_scope',
            text,
          )
        }
      })
  }

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
            outcome(() => authorize(principal(undefined, kind), group, { target: ORG })),
            'credential_not_allowed',
          )
    }
  })

  it('keeps what operators do from everybody else, whatever their role', () => {
    for (const operationId of ['issuePasswordReset', 'listLoginEvents'] as const)
      assert.equal(
        outcome(() =>
          authorize(principal('owner', 'session'), policyRowOf(ROUTES[operationId]), { target: undefined }),
        ),
        'forbidden',
      )
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
        outcome(() => authorize(principal('viewer'), row, { target: ORG, subject })),
        expected,
      )
    assert.equal(
      outcome(() => authorize(principal(undefined), row, { target: ORG, subject: 'user:usr_me' })),
      'organization_not_found',
    )
  })

  it('guards production of a protected project, and only that', () => {
    const may = (role: Role, kind: 'production' | 'staging', protectProduction: boolean, scopes?: Scope[]): string =>
      outcome(() =>
        authorizeProduction(
          { principal: principal(role, 'personal', scopes), target: ENV },
          { kind, protectProduction },
        ),
      )
    assert.equal(may('developer', 'production', true), 'forbidden')
    assert.equal(may('admin', 'production', true), 'yes')
    assert.equal(may('developer', 'production', false), 'yes')
    assert.equal(may('developer', 'staging', true), 'yes')
    assert.equal(may('owner', 'production', true, [{ level: 'deploy' }]), 'insufficient_scope')
    assert.equal(may('owner', 'production', true, [{ level: 'admin' }]), 'yes')
  })

  it('lets a scope narrow a role, and never widen it', () => {
    const asks = (role: Role, level: Level, required: Role): string =>
      outcome(() => requireRole({ principal: principal(role, 'agent', [{ level }]), target: ENV }, required))
    assert.equal(asks('viewer', 'admin', 'developer'), 'forbidden')
    assert.equal(asks('owner', 'read', 'developer'), 'insufficient_scope')
    assert.equal(asks('owner', 'admin', 'owner'), 'insufficient_scope')
    assert.equal(asks('developer', 'deploy', 'developer'), 'yes')
  })

  it('lets nothing pass by scopes when nobody said what the call is about, or none is left', () => {
    const owner = principal('owner', 'agent', [{ level: 'admin' }])
    assert.equal(
      outcome(() => requireRole({ principal: owner }, 'viewer')),
      'insufficient_scope',
    )
    const empty = principal('owner', 'agent', [])
    assert.equal(
      outcome(() => requireRole({ principal: empty, target: ENV }, 'viewer')),
      'insufficient_scope',
    )
  })

  it('says which scope would do', () => {
    const agent = principal('owner', 'agent', [{ level: 'read' }])
    assert.throws(
      () => requireRole({ principal: agent, target: ENV }, 'developer'),
      (error: DomainError) => {
        assert.deepEqual(error.details, {
          required_role: 'developer',
          missing_permissions: ['env:acme/shop/main:deploy'],
        })
        return true
      },
    )
  })
})
