/** Links in answers where nobody said under which URL people reach the service, as on a single box just started. */
import assert from 'node:assert/strict'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { makeTeam, ORG } from '../../testkit/api-team.ts'
import { signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { DEVICE_GRANT } from '../contract/device-flow.ts'

/** Every link that an answer can hold. */
const linksOf = async (api: TestApiServer): Promise<Readonly<Record<string, string | undefined>>> => {
  const { owner, viewer } = await makeTeam(api)
  const { client } = await signInAs(api, owner)
  const device = await api.nobody.call('requestDeviceCode', { body: { client_name: 'coder' } })
  const { user_code, device_code, verification_uri, verification_uri_complete } = device.body
  await client.call('approveDevice', { body: { user_code, scopes: ['read'] } })
  const fetched = await api.nobody.call('pollDeviceToken', { body: { grant_type: DEVICE_GRANT, device_code } })
  const reset = await client.call('issuePasswordReset', {
    body: { email: viewer.email, admin_password: TEST_PASSWORD },
  })
  const invitation = await owner.call('createInvitation', {
    params: { org: ORG },
    body: { email: 'guest@example.com', role: 'viewer' },
  })
  const agent = await owner.call('createToken', { body: { name: 'coder', scopes: ['read'] } })
  return {
    verification_uri,
    verification_uri_complete,
    reset_url: reset.body.reset_url,
    invite_url: invitation.body.invite_url,
    revoke_url: agent.body.revoke_url,
    'revoke_url of a device': fetched.body.revoke_url,
  }
}

describe('links', () => {
  it('lead to where the API listens, when neither the console’s nor the public URL is set', async () => {
    const api = await startTestApiServer({ operator: false })
    try {
      for (const [name, url = ''] of Object.entries(await linksOf(api)))
        assert.ok(URL.canParse(url) && new URL(url).origin === api.url, `${name}: ${url}`)
      const told = await api.nobody.call('requestDeviceCode', { body: { client_name: 'coder' } })
      assert.equal(told.body.verification_uri, `${api.url}/auth/device`)
    } finally {
      await api.stop()
    }
  })

  it('lead to loopback where the API listens at all addresses', async () => {
    const api = await startTestApiServer({ operator: false, config: { listen: { host: '0.0.0.0', port: 0 } } })
    try {
      const told = await api.nobody.call('requestDeviceCode', { body: { client_name: 'coder' } })
      assert.equal(new URL(told.body.verification_uri).origin, api.url.replace('0.0.0.0', '127.0.0.1'))
    } finally {
      await api.stop()
    }
  })
})
