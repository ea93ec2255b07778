/** What each call of the login, and of accounts, leaves in the logs: every route is called once, and its events are all there are. */
import assert from 'node:assert/strict'
import { ACCOUNT_EVENT_TYPES, type AccountEventType, type AuditAction } from '../../lib/model/audit.ts'
import type { ApiAnswer } from '../../testkit/api-answers.ts'
import { ApiClient, type OperationId } from '../../testkit/api-client.ts'
import type { ApiCaller, TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, makeTeam, ORG } from '../../testkit/api-team.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { type LoginWorld, linkAndCode, startLoginWorld } from '../../testkit/login-world.ts'
import { aimAt } from '../../testkit/route-aim.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { fromAnywhere, givePassword, signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { configureSso, SSO_CLIENT, SSO_ENVIRONMENT, SsoBrowser, startSso } from '../../testkit/sso.ts'
import { policyRowOf } from '../auth/policy.ts'
import type { apiKeyRoutes } from '../contract/api-keys.ts'
import type { auditEventRoutes } from '../contract/audit-events.ts'
import { DEVICE_GRANT } from '../contract/device-flow.ts'
import type { environmentRoutes } from '../contract/environments.ts'
import type { healthRoutes } from '../contract/health.ts'
import type { invitationRoutes } from '../contract/invitations.ts'
import type { memberRoutes } from '../contract/members.ts'
import type { operationRoutes } from '../contract/operations.ts'
import type { organizationRoutes } from '../contract/organizations.ts'
import type { projectRoutes } from '../contract/projects.ts'
import { ROUTES } from '../contract/routes.ts'
import type { ssoRoutes } from '../contract/sso.ts'

/** About organizations, whose events every-route.test.ts counts. */
type OfOrganizations =
  | keyof typeof apiKeyRoutes
  | keyof typeof auditEventRoutes
  | keyof typeof environmentRoutes
  | keyof typeof healthRoutes
  | keyof typeof invitationRoutes
  | keyof typeof memberRoutes
  | keyof typeof operationRoutes
  | keyof typeof organizationRoutes
  | keyof typeof projectRoutes
  | keyof typeof ssoRoutes
type OfLogin = Exclude<OperationId, OfOrganizations>

/** Of an account, or of an organization. */
type Event = AccountEventType | `audit ${AuditAction}`

const READS = 'it changes nothing'
/** What the client of the tests calls itself. */
const FETCH = 'node'

/** By route: a new one without a line does not compile. A text says why it leaves none. In the order in which they are called. */
const LEAVES: Readonly<Record<OfLogin, readonly Event[] | string>> = {
  getSetup: READS,
  setUp: ['sign_in', 'setup_completed'],
  listTokens: READS,
  createToken: ['create_token'],
  revokeToken: ['revoke_token'],
  listTokenEvents: READS,
  signIn: ['sign_in'],
  signInMfa: ['sign_in'],
  signOut: ['sign_out'],
  getSession: READS,
  listSessions: READS,
  revokeSession: ['session_revoked'],
  revokeOtherSessions: ['session_revoked'],
  changePassword: ['password_changed'],
  getMfa: READS,
  beginTotp: 'its secret is asked for by nobody before confirmTotp',
  confirmTotp: ['mfa_enrolled'],
  removeTotp: ['mfa_removed'],
  renewRecoveryCodes: ['recovery_codes_renewed'],
  requestMagicLink: ['magic_link_requested'],
  previewMagicLink: READS,
  verifyMagicLink: ['magic_link_used', 'email_verified', 'sign_in'],
  requestPasswordReset: ['password_reset_requested'],
  issuePasswordReset: ['password_reset_requested'],
  previewPasswordReset: READS,
  completePasswordReset: ['email_verified', 'password_reset'],
  previewInvitation: READS,
  acceptInvitation: ['create_user', 'audit accept_invitation'],
  startSso: 'nobody is known yet: what comes of it is told by finishSso',
  finishSso: ['create_user', 'sign_in', 'audit put_member'],
  requestDeviceCode: ['device_requested'],
  getDeviceRequest: READS,
  approveDevice: ['approve_device'],
  denyDevice: ['device_denied'],
  pollDeviceToken: ['create_token'],
  listLoginEvents: READS,
}

describe('the events of the login', () => {
  let world: LoginWorld
  let api: TestApiServer
  let team: ApiTeam
  let provider: TestIdentityProvider
  before(async () => {
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    world = await startLoginWorld({ environment: SSO_ENVIRONMENT })
    api = world.api
    team = await makeTeam(api)
    await configureSso(team.owner, ORG, provider, { default_role: 'viewer' })
  })
  after(async () => {
    await world.stop()
    await provider.stop()
  })

  interface Recorded {
    readonly type: Event
    readonly userId: string | null
    readonly clientIp: string | null
    /** Of accounts. */
    readonly userAgent: string | null
    readonly metadata: Readonly<Record<string, unknown>>
  }
  /** Everything that was recorded, accounts first. */
  const recorded = (): Promise<readonly Recorded[]> =>
    api.plane.database.rows<Recorded>(
      `select type, user_id as "userId", client_ip as "clientIp", user_agent as "userAgent", metadata from (
         select 0 as kind, type, user_id, client_ip, user_agent, metadata, '' as org, id from account_events union all
         select 1, 'audit ' || action, substr(actor, 6), metadata ->> 'client_ip', null, metadata, organization_id, id from audit_events
       ) events order by kind, org, id`,
    )
  const seen = new Set<Event>()
  /** What a call left, which must say what it was part of. */
  const leftBy = async (call: () => Promise<ApiAnswer>): Promise<{ answer: ApiAnswer; left: readonly Recorded[] }> => {
    const before = new Set((await recorded()).map(each => JSON.stringify(each)))
    const answer = await call()
    const left = (await recorded()).filter(each => !before.has(JSON.stringify(each)))
    for (const { type, clientIp, userAgent, metadata } of left) {
      seen.add(type)
      assert.equal(metadata['request_id'], answer.headers.get('x-request-id'), type)
      assert.match(clientIp ?? '', /^\d+\.\d+\.\d+\.\d+$/, type)
      if (!type.startsWith('audit ')) assert.equal(userAgent, FETCH, type)
    }
    return { answer, left }
  }
  const typesOf = (left: readonly Recorded[]): readonly Event[] => left.map(({ type }) => type)

  const ask = <Id extends OperationId>(operationId: Id, body: object, client: ApiClient = api.nobody) =>
    client.call(operationId, { body, headers: fromAnywhere() })
  /** Somebody with a password, by a name that nobody has. */
  const somebody = async (): Promise<ApiCaller> => {
    const caller = await api.makeCaller('somebody')
    await givePassword(api, caller.userId)
    return caller
  }
  const credentialsOf = ({ email }: ApiCaller) => ({ email, password: TEST_PASSWORD })
  const linkFor = async ({ email }: ApiCaller) => {
    assert.equal((await ask('requestMagicLink', { email })).status, 202)
    return linkAndCode(await world.nextLetter(email))
  }
  const tokenIn = async (email: string): Promise<string> =>
    /svc_(?:inv|rst)_[0-9A-Za-z]{43}/.exec((await world.nextLetter(email)).text)?.[0] ?? ''
  const resetFor = async ({ email }: ApiCaller): Promise<string> => {
    assert.equal((await ask('requestPasswordReset', { email })).status, 202)
    return tokenIn(email)
  }
  let guests = 0
  const invitation = async (email = `guest${++guests}@example.com`): Promise<string> => {
    const answer = await team.owner.call('createInvitation', { params: { org: ORG }, body: { email, role: 'viewer' } })
    assert.equal(answer.status, 201, answer.text)
    return tokenIn(email)
  }
  const firstStep = async (caller: ApiCaller): Promise<string> => {
    const { body } = await ask('signIn', credentialsOf(caller))
    return (body as unknown as { mfa_token: string }).mfa_token
  }
  const enrolled = async () => {
    const caller = await somebody()
    return { caller, ...(await enrolTotp(await signInAs(api, caller))) }
  }
  const device = async (): Promise<{ readonly device_code: string; readonly user_code: string }> =>
    (await ask('requestDeviceCode', { client_name: 'coder' })).body
  const broughtBySso = async (login: string) => {
    const { authorization_url, flow_token } = await startSso(api.nobody, ORG)
    return { ...(await new SsoBrowser(login).signIn(authorization_url)), flow_token }
  }

  /** What has no session, and so is asked with more than an address: what it is asked with. */
  const BODIES: Partial<Record<OfLogin, () => Promise<object>>> = {
    setUp: async () => {
      const line = api.logged.findLast(each => each.includes('svc_setup_')) ?? ''
      const setupToken = /svc_setup_[0-9A-Za-z]{43}/.exec(line)?.[0]
      return { setup_token: setupToken, email: 'first@example.com', password: TEST_PASSWORD }
    },
    signIn: async () => credentialsOf(await somebody()),
    signInMfa: async () => {
      const { caller, secret } = await enrolled()
      return { mfa_token: await firstStep(caller), totp_code: codeOf(secret) }
    },
    requestMagicLink: async () => ({ email: (await somebody()).email }),
    previewMagicLink: async () => ({ token: (await linkFor(await somebody())).token }),
    verifyMagicLink: async () => ({ token: (await linkFor(await somebody())).token }),
    requestPasswordReset: async () => ({ email: (await somebody()).email }),
    previewPasswordReset: async () => ({ token: await resetFor(await somebody()) }),
    completePasswordReset: async () => ({ token: await resetFor(await somebody()), new_password: TEST_PASSWORD }),
    previewInvitation: async () => ({ token: await invitation() }),
    acceptInvitation: async () => ({ token: await invitation(), password: TEST_PASSWORD }),
    startSso: () => Promise.resolve({ organization_id: ORG }),
    finishSso: () => broughtBySso('newcomer'),
    requestDeviceCode: () => Promise.resolve({ client_name: 'coder' }),
    pollDeviceToken: async () => {
      const { device_code, user_code } = await device()
      const { client } = await signInAs(api, await somebody())
      const approved = await ask('approveDevice', { user_code, scopes: ['read'] }, client)
      assert.equal(approved.status, 200, approved.text)
      return { grant_type: DEVICE_GRANT, device_code }
    },
  }

  for (const [id, leaves] of Object.entries(LEAVES) as [OfLogin, readonly Event[] | string][]) {
    const route = ROUTES[id]
    const isPublic = policyRowOf(route).role === 'public'
    const expected = typeof leaves === 'string' ? [] : leaves
    it(`of ${id} are ${typeof leaves === 'string' ? `none: ${leaves}` : leaves.join(', ')}`, async () => {
      // Before the aim: an app that it enrols would be asked for.
      const session = isPublic ? undefined : await signInAs(api, team.owner)
      const aim = isPublic ? { body: await BODIES[id]?.() } : await aimAt(route, { api, team }, team.owner)
      assert.ok(!isPublic || route.method === 'get' || aim.body !== undefined, `say in BODIES what ${id} is asked with`)
      const { client } = session ?? { client: api.nobody }
      const { answer, left } = await leftBy(() => client.call(id, { ...aim, headers: fromAnywhere() }))
      assert.equal(answer.status, route.success.status, answer.text)
      assert.deepEqual(typesOf(left), expected)
      for (const { metadata } of left)
        assert.deepEqual(
          [metadata['credential_kind'], metadata['credential_id']],
          session === undefined ? [undefined, undefined] : ['session', session.session.session_id],
        )
    })
  }

  /** The same routes where something is otherwise, and what is told of that. */
  const OTHERWISE: readonly (readonly [
    what: string,
    leaves: readonly Event[],
    call: () => Promise<() => Promise<ApiAnswer>>,
  ])[] = [
    [
      'a wrong password',
      ['sign_in_failed'],
      async () => {
        const { email } = await somebody()
        return () => ask('signIn', { email, password: 'wrong horse' })
      },
    ],
    [
      'the tenth wrong password',
      ['locked'],
      async () => {
        const { email } = await somebody()
        const wrong = () => ask('signIn', { email, password: 'wrong horse' })
        for (let n = 1; n < 10; n++) await wrong()
        return wrong
      },
    ],
    [
      'an address that nobody has',
      ['sign_in_failed'],
      async () => () => ask('signIn', { email: 'x@example.com', password: 'x' }),
    ],
    [
      'a wrong code of an app',
      ['sign_in_failed'],
      async () => {
        const { caller, secret } = await enrolled()
        return () => ask('signIn', { ...credentialsOf(caller), totp_code: codeOf(secret, 20) })
      },
    ],
    [
      'a recovery code',
      ['recovery_code_used', 'sign_in'],
      async () => {
        const { caller, recoveryCodes } = await enrolled()
        return () => ask('signIn', { ...credentialsOf(caller), recovery_code: recoveryCodes[0] })
      },
    ],
    [
      'a recovery code in a second step',
      ['recovery_code_used', 'sign_in'],
      async () => {
        const { caller, recoveryCodes } = await enrolled()
        const token = await firstStep(caller)
        return () => ask('signInMfa', { mfa_token: token, recovery_code: recoveryCodes[0] })
      },
    ],
    ['a link that is none', ['sign_in_failed'], async () => () => ask('verifyMagicLink', { token: 'svc_mgl_none' })],
    [
      'a return of single sign-on that nobody began',
      ['sign_in_failed'],
      async () => () => ask('finishSso', { state: 'x'.repeat(43), code: 'x', flow_token: 'svc_sso_none' }),
    ],
    [
      'single sign-on of somebody known',
      ['sign_in'],
      async () => {
        await ask('finishSso', await broughtBySso('regular'))
        const brought = await broughtBySso('regular')
        return () => ask('finishSso', brought)
      },
    ],
    [
      'a letter to nobody',
      ['password_reset_requested'],
      async () => () => ask('requestPasswordReset', { email: 'y@example.com' }),
    ],
    [
      'an invitation of somebody who has an account',
      ['audit accept_invitation'],
      async () => {
        const caller = await somebody()
        const token = await invitation(caller.email)
        const { client } = await signInAs(api, caller)
        return () => ask('acceptInvitation', { token }, client)
      },
    ],
    [
      'a device of an organization',
      ['audit approve_device'],
      async () => {
        const { user_code } = await device()
        const { client } = await signInAs(api, team.owner)
        return () => ask('approveDevice', { user_code, scopes: ['read'], organization_id: ORG }, client)
      },
    ],
    [
      'no other session to end',
      [],
      async () => {
        const { client } = await signInAs(api, await somebody())
        return () => client.call('revokeOtherSessions', { headers: fromAnywhere() })
      },
    ],
    [
      'a session’s token that was replaced long ago',
      ['session_reuse'],
      async () => {
        const { client, session, token } = await signInAs(api, await somebody())
        const age = (sql: string) => api.plane.database.rows(sql, [session.session_id])
        await age(`update sessions set rotated_at = now() - interval '901 s' where id = $1`)
        assert.equal((await client.call('getSession')).status, 200)
        await age(`update session_tokens set replaced_at = replaced_at - interval '61 s' where session_id = $1`)
        // The client of before has gone on with the new one.
        return () => new ApiClient(api.url, token).call('getSession', { headers: fromAnywhere() })
      },
    ],
  ]
  for (const [what, leaves, prepare] of OTHERWISE)
    it(`of ${what} are ${leaves.join(', ') || 'none'}`, async () => {
      const { left } = await leftBy(await prepare())
      assert.deepEqual(typesOf(left), leaves)
    })

  it('have every type that there is but those that a program leaves', () => {
    const byProgram = ['user_disabled', 'user_enabled'] // disable-user.ts
    assert.deepEqual(
      ACCOUNT_EVENT_TYPES.filter(type => !seen.has(type)),
      byProgram,
    )
  })
})
