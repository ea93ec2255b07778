import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ApiClient } from '../../testkit/api-client.ts'
import { ORG } from '../../testkit/api-team.ts'
import {
  answering,
  bySecret,
  bySomebodyElse,
  endless,
  type HostileProvider,
  type Malice,
  page,
  redirectTo,
  slow,
  startHostileProvider,
} from '../../testkit/hostile-provider.ts'
import { configureSso, finishSso, SSO_CLIENT_SECRET, ssoConfiguration, startSso } from '../../testkit/sso.ts'
import { type SsoWorld, startSsoWorld } from '../../testkit/sso-world.ts'

const now = (): number => Math.floor(Date.now() / 1000)
const DISCOVERY = '/.well-known/openid-configuration'

describe('a hostile identity provider of an organization', () => {
  let world: SsoWorld
  let provider: HostileProvider
  /** Something on this machine that nobody may be made to call. */
  let inside: Server
  const reached: string[] = []
  before(async () => {
    // This machine, but for one of its addresses: that is the inside here.
    world = await startSsoWorld({ environment: { SERVICE_SSO_ALLOWED_CIDRS: '127.0.0.1/32' } })
    provider = await startHostileProvider()
    inside = createServer((request, response) => {
      reached.push(request.url ?? '')
      response.end('{}')
    })
    await new Promise<void>(resolve => inside.listen(0, '127.0.0.2', resolve))
  })
  after(async () => {
    inside.close()
    inside.closeAllConnections()
    await provider.stop()
    await world.stop()
  })
  beforeEach(async () => {
    provider.malice = {}
    provider.asked.length = 0
    reached.length = 0
    // Asked anew: what was known of it goes with the change.
    await configureSso(world.team.owner, ORG, provider, { default_role: 'viewer' })
  })
  const insideUrl = (): string => `http://127.0.0.2:${(inside.address() as AddressInfo).port}`

  const start = (more: object = {}) => world.api.nobody.call('startSso', { body: { organization_id: ORG, ...more } })
  /** Begins well, and comes back with whatever the provider says then. */
  const signIn = async (malice: Malice = {}, more: object = {}) => {
    const begun = await startSso(world.api.nobody, ORG, more)
    provider.nonce = new URL(begun.authorization_url).searchParams.get('nonce') ?? ''
    provider.malice = malice
    const { state, flow_token } = begun
    return finishSso(world.api.nobody, { state, flow_token, code: 'any' })
  }
  const assertNobody = async (): Promise<void> => {
    const [count] = await world.rows<{ n: number }>(`select count(*)::int as n from sessions where method = 'sso'`)
    assert.equal(count?.n, 0)
  }

  for (const [what, malice] of [
    ['another nonce', { claims: { nonce: 'of-another-sign-in' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['another audience', { claims: { aud: 'another-service' } }],
    ['several audiences, and meant for another', { claims: { aud: ['svc-sso', 'other'], azp: 'other' } }],
    ['no audience', { claims: { aud: undefined } }],
    ['another issuer', { claims: { iss: 'https://accounts.google.com' } }],
    ['an end that was', { claims: { exp: now() - 60 } }],
    ['no end', { claims: { exp: undefined } }],
    ['a beginning that is to come', { claims: { nbf: now() + 3600 } }],
    ['no subject', { claims: { sub: undefined } }],
    ['a subject that is none', { claims: { sub: 7 } }],
    ['an empty subject', { claims: { sub: '' } }],
    ['a subject that cannot be kept', { claims: { sub: 'a\u0000b' } }],
    ['a subject without an end', { claims: { sub: 'x'.repeat(256) } }],
    ['a session that is over', { claims: { session_expiry: now() - 1 } }],
    ['an end of the session that is none', { claims: { session_expiry: 'never' } }],
    ['no signature', { header: { alg: 'none' }, signature: () => '' }],
    ['a signature of the client’s secret', { header: { alg: 'HS256' }, signature: bySecret }],
    ['a signature of another key', { signature: bySomebodyElse }],
    ['a signature of a key that it does not name', { header: { kid: 'two' }, signature: bySomebodyElse }],
    ['rubbish for a token', { idToken: 'a.b.c' }],
    ['no ID token', { idToken: undefined }],
  ] as const)
    it(`lets nobody in with ${what}`, async () => {
      const answer = await signIn(malice)
      assert.ok(
        ['sso_rejected', 'identity_provider_unavailable'].includes(answer.body.code),
        `${answer.status} ${answer.text}`,
      )
      await assertNobody()
    })

  it('lets nobody in with no signature where its metadata say that it signs so', async () => {
    for (const [alg, signature] of [
      ['none', () => ''],
      ['HS256', bySecret],
    ] as const) {
      await configureSso(world.team.owner, ORG, provider)
      provider.malice = { metadata: { id_token_signing_alg_values_supported: ['none', 'HS256'] } }
      const answer = await signIn({ header: { alg }, signature, claims: {} })
      assert.equal(answer.body.code, 'sso_rejected', alg)
    }
    await assertNobody()
  })

  it('proves nobody fresh whose proof is old, or of no time', async () => {
    for (const claims of [{ auth_time: now() - 3600 }, {}]) {
      const answer = await signIn({ claims }, { reauthenticate: true })
      assert.deepEqual([answer.status, answer.body.code], [401, 'sso_rejected'], answer.text)
    }
    const provedAt = async (claims: Malice['claims'], more: object = {}): Promise<number> => {
      const answer = await signIn({ claims: { sub: 'prover', ...claims } }, more)
      assert.equal(answer.status, 200, answer.text)
      const id = answer.body.session.session_id
      const [row] = await world.rows<{ at: Date }>('select authenticated_at as at from sessions where id = $1', [id])
      await new ApiClient(world.api.url, answer.body.token).call('signOut')
      return row!.at.getTime() / 1000 - now()
    }
    assert.ok(Math.abs((await provedAt({ auth_time: now() - 3600 })) + 3600) < 60)
    assert.ok(Math.abs(await provedAt({ auth_time: now() - 5 }, { reauthenticate: true })) < 60)
    // Not told: the provider vouched now. Nor can it say that they will.
    assert.ok(Math.abs(await provedAt({})) < 60)
    assert.ok(Math.abs(await provedAt({ auth_time: now() + 86_400 })) < 60)
  })

  for (const [what, token] of [
    ['redirects to the inside', () => redirectTo(`${insideUrl()}/latest/meta-data`)],
    ['never comes to an end', () => endless],
    ['fails', () => answering({ error: 'server_error' }, 500)],
    ['answers with a page', () => page],
  ] as const)
    it(`is not available when its token endpoint ${what}`, async () => {
      const answer = await signIn({ token: token() })
      assert.deepEqual([answer.status, answer.body.code], [503, 'identity_provider_unavailable'])
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
      assert.deepEqual(reached, [])
      await assertNobody()
    })

  it('is given up when it is slow, at discovery and at tokens, and nobody else waits for it', async () => {
    const slowly = signIn({ token: slow })
    const other = world.team.owner.call('listProjects', { params: { org: ORG } })
    const first = await Promise.race([slowly.then(() => 'slow'), other.then(() => 'other')])
    assert.equal(first, 'other')
    assert.equal((await slowly).body.code, 'identity_provider_unavailable')
    await configureSso(world.team.owner, ORG, provider)
    provider.malice = { discovery: slow }
    assert.equal((await start()).body.code, 'identity_provider_unavailable')
  }).timeout(30_000)

  for (const [what, malice] of [
    ['are of another issuer', () => ({ metadata: { issuer: 'https://accounts.google.com' } })],
    ['redirect to the inside', () => ({ discovery: redirectTo(`${insideUrl()}${DISCOVERY}`) })],
    ['never come to an end', () => ({ discovery: endless })],
    ['are a page', () => ({ discovery: page })],
    ['are not there', () => ({ discovery: answering({}, 404) })],
    ['name no page to sign in at', () => ({ metadata: { authorization_endpoint: undefined } })],
    ['name a script to sign in at', () => ({ metadata: { authorization_endpoint: 'javascript:alert(1)' } })],
    ['name a page without TLS', () => ({ metadata: { authorization_endpoint: 'http://login.example.com/' } })],
  ] as const)
    it(`sends nobody anywhere when its metadata ${what}`, async () => {
      provider.malice = malice()
      const answer = await start()
      assert.deepEqual([answer.status, answer.body.code], [503, 'identity_provider_unavailable'], answer.text)
      assert.deepEqual(reached, [])
      assert.deepEqual(await world.rows("select 1 from sso_flows where expires_at > now() + interval '9 min 55 s'"), [])
    })

  for (const [what, url] of [
    ['the inside', () => `${insideUrl()}/inside`],
    ['the inside by https', () => `${insideUrl()}/inside`.replace('http:', 'https:')],
    ['metadata of a cloud', () => 'http://169.254.169.254/latest/meta-data'],
    ['metadata of a cloud by https', () => 'https://169.254.169.254/latest/meta-data'],
    ['the same as an IPv6 address', () => 'https://[::ffff:169.254.169.254]/latest/meta-data'],
    ['a name of this machine', () => `http://localhost:${(inside.address() as AddressInfo).port}/inside`],
    ['a file', () => 'file:///etc/passwd'],
    ['nothing at all', () => ''],
  ] as const)
    for (const endpoint of ['token_endpoint', 'jwks_uri'] as const)
      it(`makes us call no ${endpoint} that is ${what}`, async () => {
        provider.malice = { metadata: { [endpoint]: url() } }
        const answer = await signIn({})
        assert.ok(answer.status >= 401, answer.text)
        assert.ok(['identity_provider_unavailable', 'sso_rejected'].includes(answer.body.code), answer.text)
        assert.deepEqual(reached, [])
        await assertNobody()
      })

  it('is asked once by all who begin at once, and after a failure not again at once', async () => {
    await Promise.all(Array.from({ length: 20 }, () => startSso(world.api.nobody, ORG)))
    assert.equal(provider.asked.filter(path => path === DISCOVERY).length, 1)
    await configureSso(world.team.owner, ORG, provider)
    provider.asked.length = 0
    provider.malice = { discovery: answering({}, 500) }
    for (let n = 0; n < 10; n++) assert.equal((await start()).status, 503)
    assert.equal(provider.asked.length, 1)
  })

  it('that takes its codes again and again gets one session for a sign-in all the same', async () => {
    const { authorization_url, state, flow_token } = await startSso(world.api.nobody, ORG)
    provider.nonce = new URL(authorization_url).searchParams.get('nonce') ?? ''
    provider.malice = { claims: { sub: 'again' } }
    const finish = () => finishSso(world.api.nobody, { state, flow_token, code: 'any' })
    const answers = [...(await Promise.all(Array.from({ length: 6 }, finish))), await finish()]
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401, 401])
    assert.equal(provider.asked.filter(path => path === '/token').length, 1)
    await world.rows(`delete from sessions where method = 'sso'`)
  })

  it('that is changed while it is asked lets nobody in by what it said then', async () => {
    let change: Promise<unknown> | undefined
    const before = (): Promise<unknown> => (change ??= configureSso(world.team.owner, ORG, provider, {}))
    const answer = await signIn({ before })
    assert.ok(change !== undefined)
    assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_sso_state'], answer.text)
    assert.equal(await world.lastFailure(), 'the provider was changed')
    await assertNobody()
  })

  it('shows what it is told to nobody: no secret is in logs, events or answers', async () => {
    const answer = await signIn({
      token: answering({ error: SSO_CLIENT_SECRET, error_description: 'canary-told' }, 400),
    })
    assert.equal(answer.body.code, 'sso_rejected')
    const events = await world.rows(`select * from account_events where type = 'sign_in_failed'`)
    for (const text of [answer.text, JSON.stringify(events), world.api.logged.join('')])
      for (const secret of [SSO_CLIENT_SECRET, 'canary-told', 'svc_sso_']) assert.ok(!text.includes(secret))
  })

  it('is refused at once where it is at an address that is not allowed', async () => {
    const body = ssoConfiguration({ issuer: insideUrl() })
    const answer = await world.team.owner.call('putSso', { params: { org: ORG }, body })
    assert.equal(answer.body.errors?.[0]?.pointer, '#/issuer')
  })
})
