import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from '../../testkit/api-client.ts'
import { ORG } from '../../testkit/api-team.ts'
import { REPLICAS, sized } from '../../testkit/full.ts'
import {
  configureSso,
  finishSso,
  SSO_CLIENT_SECRET,
  SsoBrowser,
  signInBySso,
  ssoConfiguration,
  startSso,
} from '../../testkit/sso.ts'
import { type SsoWorld, startSsoWorld } from '../../testkit/sso-world.ts'

const at = { params: { org: ORG } }

describe('single sign-on of an organization', () => {
  let world: SsoWorld
  let replica: ApiClient
  before(async () => {
    world = await startSsoWorld({ replicas: REPLICAS })
    replica = new ApiClient(await world.api.startReplica())
  })
  after(() => world.stop())
  beforeEach(async () => {
    world.provider.claims = {}
    await configureSso(world.team.owner, ORG, world.provider, { default_role: 'developer' })
  })

  const put = (body: object) => world.team.admin.call('putSso', { ...at, body })
  const pointerOf = async (body: object): Promise<unknown> => {
    const answer = await put(body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'validation_failed'], answer.text)
    return answer.body.errors?.[0]?.pointer
  }
  const begun = (more: object = {}) => startSso(world.api.nobody, ORG, more)
  const finish = (body: Readonly<Record<string, unknown>>) => finishSso(world.api.nobody, body)
  const codeOf = async (body: Readonly<Record<string, unknown>>) => {
    const answer = await finish(body)
    return [answer.status, answer.body.code]
  }

  describe('its provider', () => {
    it('is put, read and removed by admins, and its secret is told nowhere', async () => {
      const { team, provider, api, rows } = world
      const made = await put(ssoConfiguration(provider, { default_role: 'viewer' }))
      assert.equal(made.status, 200, made.text)
      const read = await team.admin.call('getSso', at)
      assert.deepEqual(read.body, made.body)
      assert.deepEqual(
        [read.body.issuer, read.body.client_id, read.body.default_role, read.body.redirect_uri],
        [provider.issuer, 'svc-sso', 'viewer', 'https://console.example.com/auth/sso/callback'],
      )
      const removed = await team.admin.call('deleteSso', at)
      assert.equal(removed.status, 204, removed.text)
      assert.deepEqual((await team.admin.call('getSso', at)).body.code, 'sso_not_found')
      assert.deepEqual((await team.admin.call('deleteSso', at)).body.code, 'sso_not_found')
      await put(ssoConfiguration(provider))
      const { events } = (await team.owner.call('listAuditEvents', at)).body
      const own = events.filter(each => each.resource_kind === 'sso')
      assert.deepEqual(own.map(each => each.action).slice(-3), ['put_sso', 'delete_sso', 'put_sso'])
      assert.deepEqual(own.at(-1)?.metadata['client_id'], 'svc-sso')
      const [kept] = await rows<{ sealed: string }>('select sealed_secret as sealed from organization_sso')
      assert.match(kept?.sealed ?? '', /^v1\./)
      const replies = await rows<{ body: Buffer | null }>('select body from idempotency_keys')
      const everything = [read.text, made.text, JSON.stringify([events, kept]), api.logged.join('')]
      assert.ok(
        ![...everything, ...replies.map(each => String(each.body))].some(each => each.includes(SSO_CLIENT_SECRET)),
      )
    })

    it('keeps its secret where issuer and client stay the same, and takes it nowhere else', async () => {
      const { provider } = world
      const { client_secret: _secret, ...rest } = ssoConfiguration(provider)
      assert.equal((await put({ ...rest, default_role: 'admin' })).status, 200)
      assert.equal(await pointerOf({ ...rest, issuer: 'https://login.example.com' }), '#/client_secret')
      assert.equal(await pointerOf({ ...rest, client_id: 'another' }), '#/client_secret')
      // It still opens.
      assert.equal((await signInBySso(world.api, ORG, new SsoBrowser('keeper'))).session.method, 'sso')
      await world.team.owner.call('deleteSso', at)
      assert.equal(await pointerOf(rest), '#/client_secret')
    })

    for (const [why, issuer] of [
      ['no URL', 'login.example.com'],
      ['not https', 'http://login.example.com'],
      ['a name of this machine without TLS', 'http://localhost:8080'],
      ['another scheme', 'file:///etc/passwd'],
      ['a script', 'javascript:alert(1)//'],
      ['a password in it', 'https://u:p@login.example.com'],
      ['a query', 'https://login.example.com/?a=b'],
      ['a fragment', 'https://login.example.com/#a'],
      ['metadata, which could be of anybody', 'https://login.example.com/.well-known/openid-configuration'],
      ['a private address', 'https://10.1.2.3'],
      ['a private address without TLS', 'http://10.1.2.3'],
      ['an address of metadata', 'https://169.254.169.254'],
      ['the same, written otherwise', 'https://2852039166'],
      ['the same, as an IPv6 one', 'https://[::ffff:169.254.169.254]'],
      ['an address of this machine that is not allowed', 'https://[::1]'],
      ['a backslash', 'https://login.example.com\\@evil.example'],
    ] as const)
      it(`is refused with ${why}`, async () => {
        assert.equal(await pointerOf({ ...ssoConfiguration({ issuer }) }), '#/issuer')
      })

    it('gives nobody the role owner by itself', async () => {
      assert.equal(await pointerOf(ssoConfiguration(world.provider, { default_role: 'owner' })), '#/default_role')
    })
  })

  describe('signing in', () => {
    it('begins a session that reaches the organization alone, with PKCE, nonce and our callback', async () => {
      const { api, team } = world
      await team.outsider.call('putMember', {
        params: { org: 'other', subject: `user:${team.viewer.userId}` },
        body: { role: 'viewer' },
      })
      const { authorization_url, state, flow_token, expires_at } = await begun()
      const url = new URL(authorization_url)
      assert.match(flow_token, /^svc_sso_[0-9A-Za-z]{43}$/)
      assert.deepEqual(
        ['response_type', 'state', 'redirect_uri', 'code_challenge_method'].map(name => url.searchParams.get(name)),
        ['code', state, 'https://console.example.com/auth/sso/callback', 'S256'],
      )
      assert.match(url.searchParams.get('nonce') ?? '', /^[\w-]{43}$/)
      assert.ok(!authorization_url.includes(flow_token))
      assert.ok(Math.abs(Date.parse(expires_at) - Date.now() - 600_000) < 60_000)
      const answer = await finish({ ...(await new SsoBrowser('ada').signIn(authorization_url)), flow_token })
      assert.equal(answer.status, 200, answer.text)
      const { session, user, token } = answer.body
      assert.deepEqual([session.method, session.organization_id], ['sso', ORG])
      assert.deepEqual([user.name, user.email, user.is_operator], ['Name of ada', null, false])
      const client = new ApiClient(api.url, token)
      const { organizations } = (await client.call('listOrganizations')).body
      assert.deepEqual(
        organizations.map(each => [each.organization_id, each.role]),
        [[ORG, 'developer']],
      )
      const whoami = await client.call('getSession')
      assert.deepEqual(
        whoami.body.organizations.map(each => each.organization_id),
        [ORG],
      )
      assert.equal((await client.call('listProjects', at)).status, 200)
      const elsewhere = await client.call('listProjects', { params: { org: 'other' } })
      assert.deepEqual([elsewhere.status, elsewhere.body.code], [404, 'organization_not_found'])
      assert.equal(
        (await client.call('changePassword', { body: { current_password: 'x', new_password: 'y' } })).status,
        403,
      )
      assert.equal((await client.call('signOut')).status, 204)
      assert.equal((await client.call('getSession')).status, 401)
      const [event] = await world.rows<{ metadata: Readonly<Record<string, unknown>> }>(
        `select metadata from account_events where type = 'sign_in' and user_id = $1`,
        [user.user_id],
      )
      assert.deepEqual([event?.metadata['method'], event?.metadata['organization_id']], ['sso', ORG])
    })

    it('makes no organization, also where everybody may', async () => {
      const open = await startSsoWorld({ environment: { SERVICE_PUBLIC_SIGNUP: '1' } })
      try {
        await configureSso(open.team.owner, ORG, open.provider, { default_role: 'admin' })
        const { client } = await signInBySso(open.api, ORG, new SsoBrowser('ada'))
        const made = await client.call('putOrganization', { params: { org: 'mine' }, body: { name: 'Mine' } })
        assert.deepEqual([made.status, made.body.code], [404, 'organization_not_found'])
      } finally {
        await open.stop()
      }
    })

    it('is of the browser that began it, and of nobody else', async () => {
      // The attacker begins, signs in as themselves, and gives the victim the link back.
      const [attacker, victim] = [await begun(), await begun()]
      const link = await new SsoBrowser('mallory').signIn(attacker.authorization_url)
      assert.deepEqual(await codeOf({ ...link, flow_token: victim.flow_token }), [401, 'invalid_sso_state'])
      assert.equal(await world.lastFailure(), 'no such sign-in')
      for (const flow_token of ['svc_sso_x', attacker.state, 'x'])
        assert.deepEqual(await codeOf({ ...link, flow_token }), [401, 'invalid_sso_state'])
      const other = { ...link, state: victim.state }
      assert.deepEqual(await codeOf({ ...other, flow_token: attacker.flow_token }), [401, 'invalid_sso_state'])
      // A code of another sign-in does not fit the verifier of this one.
      assert.deepEqual(await codeOf({ ...other, flow_token: victim.flow_token }), [401, 'sso_rejected'])
      assert.equal((await finish({ ...link, flow_token: attacker.flow_token })).status, 200)
    })

    it('works once, and one of many at the same moment gets the session, on two replicas', async () => {
      for (let round = 0; round < sized(3, 40); round++) {
        const name = `racer-${round}`
        const { authorization_url, flow_token } = await begun()
        const body = { ...(await new SsoBrowser(name).signIn(authorization_url)), flow_token }
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, n) => finishSso(n % 2 ? replica : world.api.nobody, body)),
        )
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401])
        const [count] = await world.rows<{ n: number }>(
          `select count(*)::int as n from sessions s join users u using (user_id) where u.sso_subject = $1`,
          [name],
        )
        assert.equal(count?.n, 1)
      }
    })

    it('makes one account of somebody who comes for the first time twice at once, on two replicas', async () => {
      const flows = await Promise.all(Array.from({ length: 4 }, () => begun()))
      const bodies = []
      for (const { authorization_url, flow_token } of flows)
        bodies.push({ ...(await new SsoBrowser('twin').signIn(authorization_url)), flow_token })
      const answers = await Promise.all(bodies.map((body, n) => finishSso(n % 2 ? replica : world.api.nobody, body)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      assert.equal(new Set(answers.map(({ body }) => body.user.user_id)).size, 1)
    })

    it('is over after ten minutes', async () => {
      const { authorization_url, flow_token } = await begun()
      const back = await new SsoBrowser('late').signIn(authorization_url)
      await world.rows(`update sso_flows set expires_at = expires_at - interval '600 s'`)
      assert.deepEqual(await codeOf({ ...back, flow_token }), [401, 'invalid_sso_state'])
    })

    it('comes to nothing when the provider says no, or somebody else answers in its place', async () => {
      const first = await begun()
      const denied = { state: first.state, flow_token: first.flow_token, error: 'access_denied' }
      assert.deepEqual(await codeOf(denied), [401, 'sso_rejected'])
      assert.deepEqual(await codeOf(denied), [401, 'invalid_sso_state'])
      // RFC 9207: an honest code that another provider's answer carries.
      for (const change of [{ iss: 'https://evil.example' }, { iss: undefined }]) {
        const { authorization_url, flow_token } = await begun()
        const back = await new SsoBrowser('mixed').signIn(authorization_url)
        assert.equal(back['iss'], world.provider.issuer)
        assert.deepEqual(await codeOf({ ...back, ...change, flow_token }), [401, 'sso_rejected'])
      }
      const { flow_token, state } = await begun()
      assert.deepEqual(await codeOf({ flow_token, state, code: 'junk' }), [401, 'sso_rejected'])
      for (const body of [
        { flow_token, state },
        { flow_token, state, code: 'a', error: 'b' },
      ])
        assert.deepEqual(await codeOf(body), [400, 'validation_failed'])
    })

    it('comes to nothing when the provider is changed meanwhile', async () => {
      for (const change of [
        () => configureSso(world.team.owner, ORG, world.provider, { default_role: 'developer' }),
        () => world.team.owner.call('deleteSso', at),
      ]) {
        const { authorization_url, flow_token } = await begun()
        const back = await new SsoBrowser('overtaken').signIn(authorization_url)
        await change()
        assert.deepEqual(await codeOf({ ...back, flow_token }), [401, 'invalid_sso_state'])
      }
      assert.deepEqual((await world.rows(`select 1 from users where sso_subject = 'overtaken'`)).length, 0)
    })

    it('is not to be had where there is no provider, whether there is an organization or not', async () => {
      await world.team.owner.call('deleteSso', at)
      const answers = await Promise.all(
        [ORG, 'nowhere'].map(organization_id => world.api.nobody.call('startSso', { body: { organization_id } })),
      )
      const [there, notThere] = answers.map(({ status, body: { code, detail } }) => [status, code, detail])
      assert.deepEqual(there, notThere)
      assert.equal(there?.[1], 'sso_not_found')
    })

    it('may be begun sixty times in five minutes from an address, and finished as often', async () => {
      const headers = { 'X-Forwarded-For': '203.0.113.77' }
      const start = () => world.api.nobody.call('startSso', { body: { organization_id: ORG }, headers })
      const answers = await Promise.all(Array.from({ length: 70 }, start))
      assert.equal(answers.filter(({ status }) => status === 200).length, 60)
      assert.ok(answers.every(({ status, body }) => status === 200 || body.code === 'rate_limited'))
      const body = { state: 'any', flow_token: 'any', code: 'any' }
      const back = () => world.api.nobody.call('finishSso', { body, headers })
      const codes = (await Promise.all(Array.from({ length: 70 }, back))).map(each => each.body.code)
      assert.equal(codes.filter(code => code === 'invalid_sso_state').length, 60)
      assert.equal(codes.filter(code => code === 'sign_in_rate_limited').length, 10)
    })

    it('needs a console to come back to', async () => {
      const bare = await startSsoWorld({ environment: { SERVICE_CONSOLE_URL: '' } })
      try {
        await configureSso(bare.team.owner, ORG, bare.provider)
        assert.equal((await bare.team.owner.call('getSso', at)).body.redirect_uri, null)
        const answer = await bare.api.nobody.call('startSso', { body: { organization_id: ORG } })
        assert.deepEqual([answer.status, answer.body.code], [409, 'console_not_configured'])
      } finally {
        await bare.stop()
      }
    })
  })

  describe('a session of it', () => {
    it('ends when the provider says, if that is before the end of all sessions', async () => {
      const end = Math.floor(Date.now() / 1000) + 3
      world.provider.claims = { session_expiry: end }
      const { client, session } = await signInBySso(world.api, ORG, new SsoBrowser('brief'))
      assert.equal(Date.parse(session.expires_at), end * 1000)
      assert.equal((await client.call('getSession')).status, 200)
      while (Date.now() / 1000 < end + 0.5) await sleep(100)
      assert.equal((await client.call('getSession')).status, 401)
      world.provider.claims = { session_expiry: end + 86_400 * 2 }
      const long = await signInBySso(world.api, ORG, new SsoBrowser('brief'))
      await world.rows(`update sessions set created_at = created_at - interval '43200 s' where id = $1`, [
        long.session.session_id,
      ])
      assert.equal((await long.client.call('getSession')).status, 401)
    })

    it('goes idle and gets new tokens like any other', async () => {
      const { client, session } = await signInBySso(world.api, ORG, new SsoBrowser('idler'))
      const age = (column: string, seconds: number) =>
        world.rows(`update sessions set ${column} = ${column} - make_interval(secs => $2) where id = $1`, [
          session.session_id,
          seconds,
        ])
      await age('rotated_at', 901)
      const next = (await client.call('getSession')).headers.get('svc-session-token')
      assert.match(next ?? '', /^svc_ses_/)
      assert.equal((await new ApiClient(world.api.url, next!).call('getSession')).status, 200)
      await age('last_used_at', 7201)
      assert.equal((await new ApiClient(world.api.url, next!).call('getSession')).status, 401)
    })
  })
})
