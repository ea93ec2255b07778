/** People of an identity provider on a single box: an organization's own one, and the one of the whole service. */
import assert from 'node:assert/strict'
import { startIdentityProvider, type TestIdentityProvider } from '../testkit/identity-provider.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import { SSO_CLIENT, SSO_ENVIRONMENT, SsoBrowser, signInBySso, ssoConfiguration } from '../testkit/sso.ts'
import { ApiClient, type ConnectionBody, type OperationBody } from './api-client.ts'
import { BoxProcess } from './box-process.ts'

/** Makes an environment and reads a row through the connection that its user is told. */
const useDatabase = async (person: ApiClient, org: string): Promise<unknown> => {
  const created = await person.expect<OperationBody>(202, 'POST', '/v1/environments', {
    body: { organization_id: org, project_id: 'app', environment_id: 'main', kind: 'staging' },
  })
  assert.equal((await person.operation(org, created.id)).state, 'succeeded')
  const path = `/v1/organizations/${org}/projects/app/environments/main/connection`
  const { connection_uri, ca_certificate } = await person.expect<ConnectionBody>(200, 'GET', path)
  const session = await openSqlDirect(connection_uri, ca_certificate)
  try {
    return await session.rows('select 1 + 1 as sum')
  } finally {
    await session.close()
  }
}

const makeOrganization = async (person: ApiClient, org: string): Promise<void> => {
  await person.expect(200, 'PUT', `/v1/organizations/${org}`, { body: { name: org } })
  const body = { region: 'local', postgres_major: 17 }
  await person.expect(200, 'PUT', `/v1/organizations/${org}/projects/app`, { body })
}

describe('a single box whose people are known to an identity provider', function () {
  this.timeout(120_000)
  let provider: TestIdentityProvider
  let box: BoxProcess
  before(async () => {
    provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
    box = await BoxProcess.start({ environment: SSO_ENVIRONMENT })
  })
  after(async () => {
    await box.remove()
    await provider.stop()
  })

  it('lets in the people of an organization’s own one, until that organization has it no more', async () => {
    const admin = box.api()
    await makeOrganization(admin, 'ada')
    const body = ssoConfiguration(provider, { default_role: 'developer' })
    await admin.expect(200, 'PUT', '/v1/organizations/ada/sso', { body })

    const { token, user } = await signInBySso({ url: box.baseUrl }, 'ada', new SsoBrowser('grace'))
    const grace = new ApiClient(box.baseUrl, token)
    assert.deepEqual(await useDatabase(grace, 'ada'), [{ sum: 2 }])
    const made = await grace.expect<{ token: string }>(201, 'POST', '/v1/account/tokens', {
      body: { name: 'laptop', scopes: ['read'] },
    })
    const laptop = new ApiClient(box.baseUrl, made.token)

    await box.stop()
    await box.start()
    await grace.expect(200, 'GET', '/v1/organizations/ada')
    await laptop.expect(200, 'GET', '/v1/organizations/ada')
    const { events } = await admin.expect<{ events: { actor: string; action: string }[] }>(
      200,
      'GET',
      '/v1/organizations/ada/audit-events?after=0&limit=100',
    )
    assert.ok(
      events.some(({ actor, action }) => actor === `user:${user.user_id}` && action === 'create_environment'),
      JSON.stringify(events),
    )

    await admin.expect(204, 'DELETE', '/v1/organizations/ada/sso')
    for (const gone of [grace, laptop]) await gone.expect(401, 'GET', '/v1/organizations/ada')
  })

  it('lets in whom the one of the service knows, beside its own credentials', async () => {
    await box.stop()
    await box.start({
      SERVICE_AUTH_MODE: 'oidc',
      SERVICE_OIDC_ISSUER_URL: provider.issuer,
      SERVICE_OIDC_CLIENT_ID: provider.clientId,
      SERVICE_OIDC_CLIENT_SECRET: provider.clientSecret,
      SERVICE_OIDC_OPERATOR_CLAIMS: 'sub=linus',
    })
    const bearer = await provider.mint({ subject: 'linus' })
    const linus = new ApiClient(box.baseUrl, bearer)
    await makeOrganization(linus, 'linus')
    assert.deepEqual(await useDatabase(linus, 'linus'), [{ sum: 2 }])
    await box.api().expect(200, 'GET', '/v1/organizations')

    await provider.stop()
    const stranger = await new ApiClient(box.baseUrl, `${bearer}x`).call('GET', '/v1/organizations/linus')
    assert.deepEqual(
      [stranger.status, (stranger.body as { code: string }).code],
      [503, 'identity_provider_unavailable'],
    )
    await box.api().expect(200, 'GET', '/v1/organizations')
    await provider.start()
  })
})
