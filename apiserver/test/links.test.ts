/** Links in answers where nobody said under which URL people reach the service, as on a single box just started. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { makeTeam, ORG } from '../../testkit/api-team.ts'
import { CONSOLE_URL, startLoginWorld } from '../../testkit/login-world.ts'
import { sendBytes } from '../../testkit/raw-http.ts'
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

  it('lead to the console, in letters and answers, whichever host a request says that it came to', async () => {
    const world = await startLoginWorld()
    const { api } = world
    const { owner, viewer } = await makeTeam(api)
    const { token } = await signInAs(api, owner)
    const forged = async (path: string, body: object, bearer?: string): Promise<string> => {
      const text = JSON.stringify(body)
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: evil.example',
        'X-Forwarded-Host: evil.example',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Server: evil.example',
        'X-Original-Host: evil.example',
        'Forwarded: host=evil.example;proto=https',
        'Origin: https://evil.example',
        'Referer: https://evil.example/',
        'Content-Type: application/json',
        `Idempotency-Key: ${randomUUID()}`,
        ...(bearer === undefined ? [] : [`Authorization: Bearer ${bearer}`]),
        `Content-Length: ${Buffer.byteLength(text)}`,
        'Connection: close',
      ]
      const answer = await sendBytes(api.url, `${head.join('\r\n')}\r\n\r\n${text}`)
      assert.ok(answer.status >= 200 && answer.status < 300, `${path}: ${answer.status} ${answer.text}`)
      return JSON.stringify([answer.text, ...answer.headers])
    }
    try {
      const reset = { email: viewer.email, admin_password: TEST_PASSWORD }
      const answers = [
        await forged('/v1/auth/device/code', { client_name: 'coder' }),
        await forged('/v1/auth/builtin/password-resets', reset, token),
        await forged('/v1/account/tokens', { name: 'coder', scopes: ['read'] }, owner.token),
      ]
      const { email } = viewer
      const letters = []
      for (const path of ['password-resets/request', 'magic-link/request']) {
        answers.push(await forged(`/v1/auth/builtin/${path}`, { email }))
        letters.push(await world.nextLetter(email))
      }
      const guest = { email: 'guest@example.com', role: 'viewer' }
      answers.push(await forged(`/v1/organizations/${ORG}/invitations`, guest, owner.token))
      letters.push(await world.nextLetter(guest.email))
      for (const answer of answers) assert.ok(!answer.includes('evil'), answer)
      for (const { subject, text, html } of letters) {
        assert.ok(!`${subject} ${text} ${html}`.includes('evil'), text)
        const links = [...`${text} ${html}`.matchAll(/https?:\/\/[^/\s"]+/g)].map(([origin]) => origin)
        assert.deepEqual([...new Set(links)], [CONSOLE_URL])
      }
    } finally {
      await world.stop()
    }
  })
})
