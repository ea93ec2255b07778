import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import {
  CLIENT_SECRET,
  type Mood,
  startIdentityProvider,
  type TestIdentityProvider,
} from '../../testkit/identity-provider.ts'
import { testAuthority } from '../../testkit/mail-servers.ts'
import { fromAnywhere } from '../../testkit/sign-in.ts'
import { type Route } from '../contract/route.ts'
import { ROUTES } from '../contract/routes.ts'

const HOME = 'home'

describe('with an identity provider', () => {
  const authority = testAuthority()
  let provider: TestIdentityProvider
  let api: TestApiServer
  let replica: string
  let operator: ApiCaller

  const environmentOf = (of: TestIdentityProvider, more: Readonly<Record<string, string>> = {}) => ({
    SERVICE_AUTH_MODE: 'oidc',
    SERVICE_OIDC_ISSUER_URL: of.issuer,
    SERVICE_OIDC_CLIENT_ID: of.clientId,
    SERVICE_OIDC_CLIENT_SECRET: of.clientSecret,
    SERVICE_OIDC_CA_FILE: authority.file,
    SERVICE_OIDC_OPERATOR_CLAIMS: 'groups=platform-admins',
    SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
    ...more,
  })
  before(async () => {
    provider = await startIdentityProvider({ identity: authority.identity() })
    api = await startTestApiServer({ replicas: 'processes', environment: environmentOf(provider) })
    replica = await api.startReplica()
    operator = await api.makeCaller('operator', { isOperator: true })
    const made = await operator.call('putOrganization', { params: { org: HOME }, body: { name: 'Acme' } })
    assert.equal(made.status, 200, made.text)
  })
  after(async () => {
    await api.stop()
    await provider.stop()
  })
  beforeEach(() => {
    provider.mood = 'well'
    provider.delayMs = 0
  })

  const holder = (token: string, url = api.url): ApiClient => new ApiClient(url, token)
  const tokenOf = async (subject: string): Promise<ApiClient> => holder(await provider.mint({ subject }))
  const ask = (who: ApiClient) => who.call('listOrganizations', { headers: fromAnywhere() })
  const codeOf = async (who: ApiClient): Promise<unknown> => (await ask(who)).body.code
  const put = (subject: string, role: string) =>
    operator.call('putMember', { params: { org: HOME, subject }, body: { role } })
  /** Lets the breaker close again. */
  const recovered = async (): Promise<void> => {
    provider.mood = 'well'
    while ((await codeOf(await tokenOf('probe'))) === 'identity_provider_unavailable') await sleep(200)
  }

  it('knows whose an access token is, makes the account once, and names it by its subject', async () => {
    const token = await provider.mint({ subject: 'auth0|ada' })
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => ask(holder(token, n % 2 ? replica : api.url))),
    )
    for (const answer of answers) assert.deepEqual([answer.status, answer.body.organizations], [200, []], answer.text)
    const users = await api.plane.database.rows<{ userId: string }>(
      `select user_id as "userId" from users where issuer = $1 and subject = 'auth0|ada'`,
      [provider.issuer],
    )
    assert.equal(users.length, 1)
    const events = await api.plane.database.rows(
      `select user_agent as "userAgent" from account_events where type = 'create_user' and user_id = $1`,
      [users[0]?.userId],
    )
    assert.deepEqual(events, [{ userAgent: 'node' }])

    const member = await put('auth0|ada', 'admin')
    assert.equal(member.status, 200, member.text)
    assert.deepEqual([member.body.subject, member.body.user_id], ['auth0|ada', users[0]?.userId])
    const project = { region: 'local', postgres_major: 17 }
    const made = await holder(token).call('putProject', { params: { org: HOME, project: 'shop' }, body: project })
    assert.equal(made.status, 200, made.text)
    const { events: audited } = (await operator.call('listAuditEvents', { params: { org: HOME } })).body
    assert.equal(audited.at(-1)?.actor, 'auth0|ada')
    assert.equal(audited.at(-1)?.metadata['credential_kind'], 'oidc')
  })

  it('takes API keys and tokens of ours as before, without asking the provider', async () => {
    const key = await operator.call('createApiKey', { params: { org: HOME }, body: { name: 'ci', scopes: ['deploy'] } })
    assert.equal(key.status, 201, key.text)
    const agent = await operator.call('createToken', { body: { name: 'agent', scopes: ['read'] } })
    provider.mood = 'silent'
    const asked = provider.asked()
    const project = { params: { org: HOME, project: 'by-key' }, body: { region: 'local', postgres_major: 17 } }
    const made = await holder(key.body.secret).call('putProject', project)
    assert.equal(made.status, 200, made.text)
    for (const token of [key.body.secret, agent.body.token, operator.token])
      assert.equal((await holder(token).call('listProjects', { params: { org: HOME } })).status, 200)
    assert.equal((await holder(key.body.secret).call('listProjects', { params: { org: 'other' } })).status, 404)
    const { events } = (await operator.call('listAuditEvents', { params: { org: HOME }, query: { limit: 200 } })).body
    const event = events.find(({ resource_id }) => resource_id === 'by-key')
    assert.deepEqual([event?.actor, event?.metadata['credential_kind']], [`apikey:${key.body.api_key_id}`, 'api_key'])
    await operator.call('revokeApiKey', { params: { org: HOME, api_key: key.body.api_key_id } })
    assert.equal(await codeOf(holder(key.body.secret)), 'invalid_token')
    assert.equal(provider.asked(), asked)
  })

  it('lets a member be named before anybody has seen them; they have the role with their first call', async () => {
    const waiting = await put('future-dev', 'viewer')
    assert.deepEqual([waiting.status, waiting.body.subject], [200, 'future-dev'])
    const again = await put('future-dev', 'developer')
    assert.equal(again.body.user_id, waiting.body.user_id)
    const { organizations } = (await ask(await tokenOf('future-dev'))).body
    assert.deepEqual(
      organizations.map(each => [each.organization_id, each.role]),
      [[HOME, 'developer']],
    )
    assert.equal((await put(waiting.body.user_id, 'viewer')).body.subject, 'future-dev')
    assert.equal((await put(`user:${waiting.body.user_id}`, 'viewer')).body.subject, 'future-dev')
    const left = await operator.call('removeMember', { params: { org: HOME, subject: 'future-dev' } })
    assert.equal(left.status, 204, left.text)
    assert.deepEqual((await ask(await tokenOf('future-dev'))).body.organizations, [])
    // An actor of ours is nobody's subject, and an id that nobody has stays nobody.
    for (const subject of ['apikey:key_1', 'system:ttl', 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe'])
      assert.deepEqual([(await put(subject, 'viewer')).status], [404], subject)
    // Who is disabled is out at once, whatever the provider says.
    await api.plane.database.rows(`update users set disabled_at = now() where subject = 'future-dev'`)
    assert.equal(await codeOf(await tokenOf('future-dev')), 'invalid_token')
  })

  it('takes for an operator whose token says so, for the calls of that token', async () => {
    const claims = { groups: ['users', 'platform-admins'] }
    const chief = holder(await provider.mint({ subject: 'chief-of-platform', claims }))
    const made = await chief.call('putOrganization', { params: { org: 'by-claim' }, body: { name: 'By claim' } })
    assert.equal(made.status, 200, made.text)
    assert.equal((await chief.call('listLoginEvents', { query: { limit: 1 } })).status, 200)
    for (const groups of [['users'], 'platform-admins users', undefined]) {
      const other = holder(await provider.mint({ subject: 'chief-of-platform', claims: { groups } }))
      const refused = await other.call('putOrganization', { params: { org: 'by-nobody' }, body: { name: 'Nobody' } })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
      assert.equal((await other.call('listLoginEvents')).body.code, 'forbidden')
    }
    // A token that the operator makes is not one of the provider's, and says nothing of the kind.
    const { token } = (await chief.call('createToken', { body: { name: 'mine' } })).body
    const own = await holder(token).call('putOrganization', { params: { org: 'by-token' }, body: { name: 'Token' } })
    assert.equal(own.body.code, 'forbidden')
  })

  for (const subject of ['auth0|x', 'https://idp/user/1', 'a/../b', 'https%3A//twice', 'ä ö?#&=+'])
    it(`names a member ${subject} in a path, however it has to be written there`, async () => {
      const added = await put(subject, 'viewer')
      assert.deepEqual([added.status, added.body.subject], [200, subject], added.text)
      const path = `${api.url}/v1/organizations/${HOME}/members/${encodeURIComponent(subject)}`
      assert.ok(!new URL(path).pathname.slice(`/v1/organizations/${HOME}/members/`.length).includes('/'))
      const { organizations } = (await ask(await tokenOf(subject))).body
      assert.deepEqual(
        organizations.map(each => each.role),
        ['viewer'],
      )
      const left = await operator.call('removeMember', { params: { org: HOME, subject } })
      assert.equal(left.status, 204, left.text)
      assert.deepEqual((await ask(await tokenOf(subject))).body.organizations, [])
    })

  it('asks with its own credentials, once for all who come with a token at once, and not again for a while', async () => {
    const token = await provider.mint({ subject: 'busy' })
    provider.delayMs = 50
    const before = provider.asked()
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(holder(token))))
    assert.ok(answers.every(({ status }) => status === 200))
    for (let n = 0; n < 5; n++) await ask(holder(token))
    assert.equal(provider.asked() - before, 1)
    const { authorization = '', body } = provider.questions.at(-1) ?? { body: '' }
    const [id, secret] = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString().split(':')
    assert.deepEqual([id, secret && decodeURIComponent(secret)], [provider.clientId, CLIENT_SECRET])
    assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), { token, token_type_hint: 'access_token' })
  })

  it('believes no token that is unknown, over, for another audience, of another kind or of nobody', async () => {
    const over = await provider.mint({ seconds: 1 })
    await sleep(1100)
    const revoked = await provider.mint()
    await provider.revoke(revoked)
    for (const [what, token] of [
      ['unknown', 'no-such-token'],
      ['over', over],
      ['revoked', revoked],
      ['for another audience', await provider.mint({ audience: 'another-service' })],
      ['a refresh token', await provider.mint({ kind: 'RefreshToken' })],
      ['a client’s own', await provider.mint({ kind: 'ClientCredentials' })],
      ['of a subject that reads like ours', await provider.mint({ subject: 'user:usr_1' })],
    ] as const)
      assert.equal(await codeOf(holder(token)), 'invalid_token', what)
  })

  it('takes a revoked token for good no longer than half a minute, and one that ends no longer than that', async () => {
    const [revoked, ending] = [await provider.mint({ subject: 'r' }), await provider.mint({ subject: 'e', seconds: 2 })]
    for (const token of [revoked, ending]) assert.equal((await ask(holder(token))).status, 200)
    await provider.revoke(revoked)
    // What was learnt is still believed: the window that is documented (KnownTokens says how long).
    assert.equal((await ask(holder(revoked))).status, 200)
    await sleep(2100)
    assert.equal(await codeOf(holder(ending)), 'invalid_token')
    assert.equal(await codeOf(holder(revoked, replica)), 'invalid_token')
  })

  it('never takes our own tokens there, nor what cannot be one', async () => {
    const before = provider.asked()
    const ours = ['svc_pat_junk', 'svc_ses_junk', 'svc_agt_x', 'svck_x', 'svc_anything', 'a:b', 'x'.repeat(4097)]
    for (const token of ours) assert.equal(await codeOf(holder(token)), 'invalid_token', token)
    assert.equal((await ask(operator)).status, 200)
    assert.equal(provider.asked(), before)
    assert.equal(await codeOf(holder('x'.repeat(4096))), 'invalid_token')
    assert.equal(provider.asked(), before + 1)
  })

  for (const mood of ['rubbish', 'not-json', 'endless', 'broken-off', 'redirecting', 'failing', 'refusing'] as const)
    it(`answers 503 when the provider is ${mood}, and lets nobody in`, async () => {
      const known = await tokenOf('known')
      assert.equal((await ask(known)).status, 200)
      provider.mood = mood satisfies Mood
      const answer = await ask(await tokenOf('stranger'))
      assert.deepEqual([answer.status, answer.body.code], [503, 'identity_provider_unavailable'])
      assert.match(answer.headers.get('retry-after') ?? '', /^[1-5]$/)
      assert.equal(answer.headers.get('www-authenticate'), null)
      // Whoever is known, and who has a token of ours, goes on.
      assert.equal((await ask(known)).status, 200)
      assert.equal((await ask(operator)).status, 200)
      await recovered()
    })

  it('answers 503 within its deadline when the provider says nothing, and then without waiting', async () => {
    provider.mood = 'silent'
    const started = performance.now()
    const tokens = await Promise.all(Array.from({ length: 5 }, () => tokenOf('slow')))
    const answers = await Promise.all(tokens.map(each => codeOf(each)))
    assert.ok(answers.every(code => code === 'identity_provider_unavailable'))
    const waited = performance.now() - started
    assert.ok(waited > 2500, `${waited} ms`)
    const before = provider.asked()
    for (let n = 0; n < 20; n++) assert.equal(await codeOf(await tokenOf('slow')), 'identity_provider_unavailable')
    // Left alone: at most one call tries it.
    assert.ok(provider.asked() - before <= 1, String(provider.asked() - before))
    await recovered()
  }).timeout(60_000)

  it('goes on after the provider was away', async () => {
    const token = await provider.mint({ subject: 'patient' })
    await provider.stop()
    assert.equal(await codeOf(holder(token)), 'identity_provider_unavailable')
    await provider.start()
    await recovered()
    assert.equal((await ask(holder(token))).status, 200)
  }).timeout(60_000)

  it('counts junk against its address before it asks, and locks out nobody who is known', async () => {
    const limits = {
      requestsPerMinute: 1000,
      mutationsPerMinute: 1000,
      connectionReadsPerMinute: 1000,
      verificationsPerMinute: 1000,
      anonymousPerMinute: 10,
      burst: 10,
    }
    const strict = await startTestApiServer({
      environment: environmentOf(provider),
      config: { limits },
      operator: false,
    })
    try {
      const good = holder(await provider.mint({ subject: 'neighbour' }), strict.url)
      assert.equal((await good.call('listOrganizations')).status, 200)
      const before = provider.asked()
      const codes = await Promise.all(
        Array.from(
          { length: 40 },
          async (_, n) => (await holder(`junk-${n}`, strict.url).call('listOrganizations')).body.code,
        ),
      )
      assert.ok(provider.asked() - before <= 11, String(provider.asked() - before))
      assert.ok(codes.filter(code => code === 'rate_limited').length >= 29)
      assert.equal((await good.call('listOrganizations')).status, 200)
    } finally {
      await strict.stop()
    }
  })

  it('serves without the built-in login: its calls say so, and no setup token is told', async () => {
    assert.equal(api.server.setupToken, undefined)
    const session = (await api.plane.database.row<{ n: number }>('select count(*)::int as n from sessions'))?.n
    for (const route of Object.values<Route>(ROUTES)) {
      if (route.builtinLogin !== true) continue
      const answer = await api.nobody.call(route.operationId as keyof typeof ROUTES, {
        params: { org: HOME },
        ...(route.method === 'get' ? {} : { body: route.examples.request }),
      })
      assert.deepEqual([answer.status, answer.body.code], [409, 'builtin_login_disabled'], route.operationId)
    }
    assert.equal(session, 0)
  })

  it('keeps its secret out of logs and answers', async () => {
    provider.mood = 'failing'
    const token = await provider.mint({ subject: 'canary' })
    const answer = await ask(holder(token))
    for (const text of [api.logged.join(''), answer.text]) {
      assert.ok(!text.includes(CLIENT_SECRET) && !text.includes(encodeURIComponent(CLIENT_SECRET)))
      assert.ok(!text.includes(token))
    }
    await recovered()
  })

  it('speaks http on this machine, and asks where it is told to without reading metadata', async () => {
    const plain = await startIdentityProvider()
    const environment = environmentOf(plain, {
      SERVICE_OIDC_INTROSPECTION_URL: `${plain.issuer}/token/introspection`,
      SERVICE_OIDC_AUDIENCE: 'https://api.example.com',
    })
    const other = await startTestApiServer({ environment, operator: false })
    try {
      const minted = await plain.mint({ audience: 'https://api.example.com' })
      assert.equal((await holder(minted, other.url).call('listOrganizations')).status, 200)
      assert.equal((await holder(await plain.mint(), other.url).call('listOrganizations')).body.code, 'invalid_token')
    } finally {
      await other.stop()
      await plain.stop()
    }
  })

  it('does not believe a provider whose certificate proves nothing', async () => {
    const stranger = await startIdentityProvider({ identity: testAuthority().identity() })
    const other = await startTestApiServer({ environment: environmentOf(stranger), operator: false })
    try {
      const minted = await stranger.mint()
      assert.equal(
        (await holder(minted, other.url).call('listOrganizations')).body.code,
        'identity_provider_unavailable',
      )
    } finally {
      await other.stop()
      await stranger.stop()
    }
  })
})
