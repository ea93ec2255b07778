import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { startIdentityProvider, type TestIdentityProvider } from '../../testkit/identity-provider.ts'
import { configureSso, SSO_CLIENT, SSO_ENVIRONMENT, SsoBrowser, signInBySso } from '../../testkit/sso.ts'
import { DEVICE_GRANT } from '../contract/device-flow.ts'

const ORG = 'acme'

describe('single sign-on where an identity provider says who the people of the service are', () => {
  let provider: TestIdentityProvider
  let api: TestApiServer
  let operator: ApiCaller
  before(async () => {
    // One provider is both, which is the worst case: the same issuer, the same subjects.
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    api = await startTestApiServer({
      operator: false,
      environment: {
        ...SSO_ENVIRONMENT,
        SERVICE_AUTH_MODE: 'oidc',
        SERVICE_OIDC_ISSUER_URL: provider.issuer,
        SERVICE_OIDC_CLIENT_ID: provider.clientId,
        SERVICE_OIDC_CLIENT_SECRET: provider.clientSecret,
      },
    })
    operator = await api.makeCaller('operator', { isOperator: true })
    const made = await operator.call('putOrganization', { params: { org: ORG }, body: { name: 'Acme' } })
    assert.equal(made.status, 200, made.text)
    await configureSso(operator, ORG, provider, { default_role: 'developer' })
  })
  after(async () => {
    await api.stop()
    await provider.stop()
  })

  const holder = async (subject: string) => new ApiClient(api.url, await provider.mint({ subject }))

  it('lets somebody approve a coding agent’s sign-in, end to end', async () => {
    const asked = await api.nobody.call('requestDeviceCode', {
      body: { client_name: 'agent', scopes: ['deploy'], ttl: '1h' },
    })
    const { user_code, device_code, verification_uri } = asked.body
    assert.equal(verification_uri, 'https://console.example.com/auth/device')
    // An access token cannot: whoever is at the browser can.
    const bearer = await (await holder('ada')).call('approveDevice', { body: { user_code, scopes: ['deploy'] } })
    assert.deepEqual([bearer.status, bearer.body.code], [403, 'credential_not_allowed'])
    const { client, user } = await signInBySso(api, ORG, new SsoBrowser('ada'))
    const seen = await client.call('getDeviceRequest', { params: { user_code } })
    assert.deepEqual(seen.body.requested_scopes, ['deploy'])
    const granted = await client.call('approveDevice', { body: { user_code, scopes: ['deploy'] } })
    assert.equal(granted.status, 200, granted.text)
    const got = await api.nobody.call('pollDeviceToken', { body: { grant_type: DEVICE_GRANT, device_code } })
    assert.equal(got.status, 200, got.text)
    const agent = new ApiClient(api.url, got.body.access_token)
    const body = { region: 'local', postgres_major: 17 }
    assert.equal((await agent.call('putProject', { params: { org: ORG, project: 'shop' }, body })).status, 200)
    const { events } = (await operator.call('listAuditEvents', { params: { org: ORG } })).body
    assert.deepEqual(
      events.slice(-3).map(({ action, actor, metadata }) => [action, actor, metadata['credential_kind']]),
      [
        ['approve_device', `user:${user.user_id}`, 'session'],
        // The device is nobody: its token is told of whoever approved.
        ['create_token', `user:${user.user_id}`, undefined],
        ['put_project', `user:${user.user_id}`, 'agent'],
      ],
    )
    assert.equal((await client.call('listTokens')).body.tokens[0]?.organization_id, ORG)
    assert.equal((await client.call('getSession')).body.session.organization_id, ORG)
    assert.equal((await client.call('signOut')).status, 204)
    assert.equal((await client.call('getSession')).status, 401)
    // The agent goes on until somebody ends it, or the membership.
    assert.equal((await agent.call('listProjects', { params: { org: ORG } })).status, 200)
    const member = { params: { org: ORG, subject: 'sso:ada' } }
    assert.equal((await operator.call('removeMember', member)).status, 204)
    assert.equal((await agent.call('listProjects', { params: { org: ORG } })).status, 401)
  })

  it('keeps accounts of the two apart, whatever the provider calls them', async () => {
    const [bySso, byToken] = [await signInBySso(api, ORG, new SsoBrowser('bob')), await holder('bob')]
    assert.deepEqual((await byToken.call('listOrganizations')).body.organizations, [])
    assert.equal((await byToken.call('listProjects', { params: { org: ORG } })).status, 404)
    const put = async (subject: string, role: string) =>
      (await operator.call('putMember', { params: { org: ORG, subject }, body: { role } })).body
    const [one, other] = [await put('bob', 'viewer'), await put('sso:bob', 'admin')]
    assert.deepEqual([one.subject, one.sso_subject], ['bob', null])
    assert.deepEqual([other.subject, other.sso_subject], [`user:${bySso.user.user_id}`, 'bob'])
    assert.notEqual(one.user_id, other.user_id)
    const roles = async (client: ApiClient) =>
      (await client.call('listOrganizations')).body.organizations.map(each => each.role)
    assert.deepEqual([await roles(byToken), await roles(bySso.client)], [['viewer'], ['admin']])
    // Who calls themselves so there is nobody here.
    assert.equal((await (await holder('sso:bob')).call('listOrganizations')).status, 401)
  })

  it('is switched off with the rest of the login where there is a password in it', async () => {
    const { client } = await signInBySso(api, ORG, new SsoBrowser('carol'))
    const answer = await client.call('beginTotp', { body: { password: 'any' } })
    assert.deepEqual([answer.status, answer.body.code], [409, 'builtin_login_disabled'])
    assert.equal((await client.call('getMfa')).body.code, 'credential_not_allowed')
    assert.equal((await client.call('listSessions')).status, 200)
    assert.equal((await client.call('revokeOtherSessions')).status, 200)
  })
})
