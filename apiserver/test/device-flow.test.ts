import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { assertProblem } from '../../testkit/api-answers.ts'
import { ApiClient, send } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, makeTeam, ORG } from '../../testkit/api-team.ts'
import { REPLICAS } from '../../testkit/full.ts'
import { closeRawConnections, sendRaw } from '../../testkit/raw-http.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD, type TestSession } from '../../testkit/sign-in.ts'
import { DEVICE_GRANT } from '../contract/device-flow.ts'
import { sweepDeviceRequests } from '../store/login/device-requests.ts'

describe('the device flow', () => {
  let api: TestApiServer
  let team: ApiTeam
  let replica: ApiClient
  let session: TestSession
  before(async () => {
    const environment = { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8', SERVICE_CONSOLE_URL: 'https://console.example.com/' }
    api = await startTestApiServer({ operator: false, replicas: REPLICAS, environment })
    team = await makeTeam(api)
    replica = new ApiClient(await api.startReplica())
    session = await signInAs(api, team.developer)
  })
  after(async () => {
    closeRawConnections()
    await api.stop()
  })

  const rows = (text: string, values?: readonly unknown[]) => api.plane.database.rows(text, values)
  const begin = async (more: object = {}) => {
    const answer = await api.nobody.call('requestDeviceCode', {
      body: { client_name: 'coder', ...more },
      headers: fromAnywhere(),
    })
    assert.equal(answer.status, 200, answer.text)
    return answer.body
  }
  const poll = (device_code: string, at: ApiClient = api.nobody) =>
    at.call('pollDeviceToken', { body: { grant_type: DEVICE_GRANT, device_code } })
  /** Lets time pass for the polls and ends of all requests. */
  const pass = async (seconds: number): Promise<void> => {
    await rows(
      `update device_requests set polled_at = polled_at - make_interval(secs => $1), expires_at = expires_at - make_interval(secs => $1),
         told_until = told_until - make_interval(secs => $1)`,
      [seconds],
    )
  }
  const approve = (user_code: string, more: object = {}, who: TestSession = session) =>
    who.client.call('approveDevice', { body: { user_code, scopes: ['read'], ...more }, headers: fromAnywhere() })
  const codeAnswer = async (answer: Promise<{ status: number; body: { code: string } }>) => {
    const { status, body } = await answer
    return [status, body.code]
  }

  it('gives an agent what a person approved: scopes, binding and life, and nothing before that', async () => {
    const asked = await begin({ scopes: [`org:${ORG}:deploy`], organization_id: ORG, ttl: '24h' })
    assert.match(asked.device_code, /^svc_dev_[0-9A-Za-z]{43}$/)
    assert.match(asked.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    assert.equal(asked.verification_uri, 'https://console.example.com/auth/device')
    assert.equal(asked.verification_uri_complete, `${asked.verification_uri}?user_code=${asked.user_code}`)
    assert.deepEqual([asked.expires_in, asked.interval], [600, 5])
    const waiting = await poll(asked.device_code)
    assert.deepEqual([waiting.status, waiting.body.code], [400, 'authorization_pending'])
    assert.equal((waiting.body as unknown as { error: string }).error, 'authorization_pending')

    const seen = await session.client.call('getDeviceRequest', {
      params: { user_code: asked.user_code.toLowerCase().replace('-', ' ') },
    })
    assert.equal(seen.status, 200, seen.text)
    assert.deepEqual(
      [seen.body.user_code, seen.body.client_name, seen.body.requested_scopes, seen.body.organization_id],
      [asked.user_code, 'coder', [`org:${ORG}:deploy`], ORG],
    )
    assert.equal(seen.body.ttl_seconds, 86_400)

    const granted = await approve(asked.user_code, { scopes: [`org:${ORG}:read`], ttl: '1h' })
    assert.equal(granted.status, 200, granted.text)
    assert.deepEqual(granted.body.scopes, [`org:${ORG}:read`])
    // Approving again says the same; nothing is there yet that could be stolen.
    assert.deepEqual((await approve(asked.user_code)).body, granted.body)
    assert.equal((await rows('select 1 from tokens where id = $1', [granted.body.token_id])).length, 0)

    await pass(5)
    const got = await poll(asked.device_code, replica)
    assert.equal(got.status, 200, got.text)
    const { access_token, token_type, expires_in = 0, scope, token_id, agent_message, revoke_url } = got.body
    assert.deepEqual([token_type, scope, token_id], ['Bearer', `org:${ORG}:read`, granted.body.token_id])
    assert.ok(expires_in > 3500 && expires_in <= 3600, String(expires_in))
    assert.ok(agent_message.includes(access_token) && revoke_url.endsWith(token_id))
    assert.match(access_token, new RegExp(`^svc_agt_org\\.${ORG}\\.read\\.exp-`))

    const agent = new ApiClient(api.url, access_token)
    assert.equal((await agent.call('listProjects', { params: { org: ORG } })).status, 200)
    const body = { region: 'local', postgres_major: 17 }
    const refused = await agent.call('putProject', { params: { org: ORG, project: 'shop' }, body })
    assert.equal(refused.body.code, 'insufficient_scope')
    const { tokens } = (await team.developer.call('listTokens')).body
    const listed = tokens.find(each => each.id === token_id)
    assert.deepEqual([listed?.name, listed?.kind, listed?.organization_id], ['coder', 'agent', ORG])

    const told = await rows(
      `select action as what, actor, metadata from audit_events where resource_id = $1
       union all select type, 'the log of sign-ins', metadata from account_events where metadata ->> 'token_id' = $1`,
      [token_id],
    )
    const actor = `user:${team.developer.userId}`
    assert.deepEqual((told as { what: string; actor: string }[]).map(each => [each.what, each.actor]).sort(), [
      ['approve_device', actor],
      ['create_token', actor],
    ])
    const everything = JSON.stringify(await rows('select * from device_requests')) + JSON.stringify(told)
    for (const secret of [asked.device_code, asked.user_code, asked.user_code.replace('-', ''), access_token])
      assert.ok(!everything.includes(secret))
  })

  it('is spoken by a client of OAuth that knows nothing of us', async () => {
    const configuration = new client.Configuration(
      {
        issuer: api.url,
        device_authorization_endpoint: `${api.url}/v1/auth/device/code`,
        token_endpoint: `${api.url}/v1/auth/device/token`,
      },
      'some-cli',
      undefined,
      client.None(),
    )
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to stand out: the server under test speaks http
    client.allowInsecureRequests(configuration)
    const asked = await client.initiateDeviceAuthorization(configuration, { client_name: 'cli', scope: 'read deploy' })
    assert.equal((await approve(asked.user_code, { scopes: ['read', 'deploy'] })).status, 200)
    const tokens = await client.pollDeviceAuthorizationGrant(configuration, { ...asked, interval: 0.01 })
    assert.equal(tokens.scope, 'read deploy')
    assert.equal((await new ApiClient(api.url, tokens.access_token).call('listOrganizations')).status, 200)

    const refused = await client.initiateDeviceAuthorization(configuration, { client_name: 'cli' })
    assert.equal((await session.client.call('denyDevice', { body: { user_code: refused.user_code } })).status, 204)
    await assert.rejects(
      client.pollDeviceAuthorizationGrant(configuration, { ...refused, interval: 0.01 }),
      (error: unknown) => error instanceof client.ResponseBodyError && error.error === 'access_denied',
    )
    await assert.rejects(
      client.initiateDeviceAuthorization(configuration, { client_name: 'cli', scope: 'everything' }),
      (error: unknown) => error instanceof client.ResponseBodyError && error.error === 'invalid_request',
    )
  })

  it('says what is wrong in OAuth’s words, whatever a form or a body holds', async () => {
    const form = (path: string, body: string, type = 'application/x-www-form-urlencoded') =>
      send(`${api.url}/v1/auth/device/${path}`, { method: 'POST', headers: { 'Content-Type': type }, body })
    const { device_code } = await begin()
    for (const [body, error, code] of [
      [`grant_type=password&device_code=${device_code}`, 'unsupported_grant_type', 'unsupported_grant_type'],
      [`device_code=${device_code}`, 'invalid_request', 'validation_failed'],
      ['grant_type=%E0%A4%A', 'invalid_request', 'invalid_encoding'],
      ['grant_type=a&grant_type=a', 'invalid_request', 'validation_failed'],
      [`grant_type=${DEVICE_GRANT}&device_code=svc_dev_junk`, 'invalid_grant', 'invalid_grant'],
      [`grant_type=${DEVICE_GRANT}&device_code=svc_dev_${'a'.repeat(43)}`, 'invalid_grant', 'invalid_grant'],
      ['', 'invalid_request', 'validation_failed'],
    ]) {
      const answer = await form('token', body ?? '')
      assert.equal(answer.status, 400, answer.text)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
      const problem = answer.body as { error: string; error_description: string; code: string }
      assert.deepEqual([problem.error, problem.code], [error, code])
      assert.match(problem.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    }
    const text = await form('token', 'grant_type=x', 'text/plain')
    assert.deepEqual([text.status, (text.body as { error: string }).error], [415, 'invalid_request'])
    const good = await form('code', `client_name=a+b%20c&scope=read`)
    assert.equal(good.status, 200, good.text)
    for (const more of [
      { scopes: ['read'], scope: 'read' },
      { scope: 'read read' },
      { scopes: ['project:acme/shop:read'] },
    ]) {
      const body = JSON.stringify({ client_name: 'x', ...more })
      assert.equal((await form('code', body, 'application/json')).status, 400)
    }
  })

  it('says so too of what is refused before it is routed, and of another method', async () => {
    const many = Array.from({ length: 70 }, (_, n) => [`X-${n}`, 'x'] as const)
    const json = ['Content-Type', 'application/json'] as const
    const post = { method: 'POST', target: '', headers: [json] }
    for (const route of ['code', 'token'])
      for (const [request, code] of [
        [{ ...post, method: 'GET' }, 'method_not_allowed'],
        [{ ...post, target: `?${'x'.repeat(8200)}` }, 'uri_too_long'],
        [{ ...post, headers: many }, 'headers_too_large'],
        [{ ...post, headers: [json, json] }, 'validation_failed'],
        [{ ...post, body: Buffer.alloc(9000, ' ') }, 'payload_too_large'],
        [{ ...post, headers: [json, ['Accept', 'text/html']] }, 'not_acceptable'],
      ] as const) {
        const answer = await sendRaw(api.url, { ...request, target: `/v1/auth/device/${route}${request.target}` })
        assertProblem(answer, [code], answer.text, 'application/json')
        const { error, error_description: description } = answer.body as Record<string, string>
        assert.equal(error, 'invalid_request')
        assert.match(description ?? '', /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
      }
    // Its neighbours are no part of OAuth.
    const elsewhere = await sendRaw(api.url, { ...post, method: 'GET', target: '/v1/auth/device/approve' })
    assertProblem(elsewhere, ['method_not_allowed'], elsewhere.text)
  })

  it('lets whoever approves take away and never add', async () => {
    const wide: readonly [object, object][] = [
      [{ scopes: [`org:${ORG}:read`] }, { scopes: [`org:${ORG}:deploy`] }],
      [{ scopes: [`org:${ORG}:read`] }, { scopes: ['read'] }],
      [{ scopes: ['read'] }, { scopes: ['read', 'deploy'] }],
      [{ organization_id: ORG, scopes: ['read'] }, { organization_id: 'other' }],
      [{ ttl: '1h' }, { ttl: '24h' }],
      [{}, { ttl: 'never' }],
      [{ ttl: '30d' }, { ttl: 'never' }],
    ]
    for (const [asked, given] of wide) {
      const { user_code } = await begin(asked)
      const answer = await approve(user_code, given)
      assert.deepEqual([answer.status, answer.body.errors?.at(0)?.code], [400, 'wider_than_requested'], answer.text)
    }
    const narrow: readonly [object, object][] = [
      [{ scopes: ['deploy'] }, { scopes: [`project:${ORG}/shop:read`], organization_id: ORG }],
      [{ scopes: [`project:${ORG}/shop:admin`], organization_id: ORG }, { scopes: [`env:${ORG}/shop/main:deploy`] }],
      [{ ttl: 'never' }, { ttl: '30m' }],
      [{ ttl: 'never' }, {}],
    ]
    for (const [asked, given] of narrow) {
      const { user_code } = await begin(asked)
      assert.equal((await approve(user_code, given)).status, 200)
    }
    const { user_code } = await begin({ scopes: ['org:other:read'] })
    const stranger = await approve(user_code, { scopes: ['org:other:read'] })
    assert.equal(stranger.body.code, 'organization_not_found')
  })

  it('makes a poll that comes too soon wait longer, for good', async () => {
    const { device_code } = await begin()
    const next = async (seconds: number): Promise<unknown> => {
      await pass(seconds)
      return (await codeAnswer(poll(device_code, replica)))[1]
    }
    assert.equal(await next(0), 'authorization_pending')
    assert.equal(await next(0), 'slow_down')
    assert.equal(await next(6), 'slow_down')
    assert.equal(await next(15), 'authorization_pending')
    assert.equal(await next(10), 'slow_down')
    assert.equal(await next(20), 'authorization_pending')
    assert.equal(await next(600), 'expired_token')
  })

  it('makes one token, whoever polls at the same moment on two replicas', async () => {
    const { device_code, user_code } = await begin()
    const { token_id } = (await approve(user_code)).body
    await rows('update device_requests set interval_seconds = 0')
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => poll(device_code, n % 2 === 0 ? api.nobody : replica)),
    )
    const told = new Set(answers.map(({ status, body }) => `${status} ${body.token_id} ${body.access_token}`))
    assert.equal(told.size, 1, JSON.stringify([...told]))
    const { status, body } = answers[0]!
    assert.deepEqual([status, body.token_id], [200, token_id])
    const events = `select 1 from account_events where type = 'create_token' and metadata ->> 'token_id' = $1`
    assert.equal((await rows(events, [token_id])).length, 1)
  })

  it('tells the token again to a device whose answer was lost: for ten minutes, at the same address, while it is in force', async () => {
    const from = fromAnywhere()
    const at = (device_code: string, headers: Readonly<Record<string, string>>) =>
      replica.call('pollDeviceToken', { body: { grant_type: DEVICE_GRANT, device_code }, headers })
    const fetched = async () => {
      const { device_code, user_code } = await begin()
      assert.equal((await approve(user_code, { ttl: '1h' })).status, 200)
      const answer = await at(device_code, from)
      assert.equal(answer.status, 200, answer.text)
      return { device_code, user_code, first: answer.body }
    }
    const { device_code, user_code, first } = await fetched()
    const kept = async (): Promise<number> => {
      await sweepDeviceRequests(api.plane.database)
      return (
        await rows('select 1 from device_requests where token_id = $1 and sealed_token is not null', [first.token_id])
      ).length
    }
    const { expires_in: life = 0, ...same } = first
    await pass(599)
    const again = await at(device_code, from)
    const { expires_in: left = 0, ...told } = again.body
    assert.deepEqual([again.status, told], [200, same])
    assert.ok(life >= left && left > life - 60, `${life} ${left}`)
    assert.deepEqual(await codeAnswer(at(device_code, fromAnywhere())), [400, 'invalid_grant'])
    assert.equal(await kept(), 1)
    // What was fetched is ended as a token, and no more as a request.
    const denied = await session.client.call('denyDevice', { body: { user_code } })
    assert.equal(denied.status, 404)
    await pass(1)
    assert.deepEqual(await codeAnswer(at(device_code, from)), [400, 'invalid_grant'])
    assert.equal(await kept(), 0)
    assert.equal((await new ApiClient(api.url, first.access_token).call('listOrganizations')).status, 200)

    for (const end of [
      (id: string) => team.developer.call('revokeToken', { params: { token: id } }),
      (id: string) => rows(`update tokens set expires_at = now() where id = $1`, [id]),
    ]) {
      const other = await fetched()
      await end(other.first.token_id)
      assert.deepEqual(await codeAnswer(at(other.device_code, from)), [400, 'invalid_grant'])
    }
  })

  it('gives nothing on behalf of those who may no longer: refused, removed, disabled', async () => {
    const other = await api.makeCaller('leaver')
    const params = { org: ORG, subject: `user:${other.userId}` }
    const join = async (): Promise<TestSession> => {
      await rows('update users set disabled_at = null where user_id = $1', [other.userId])
      assert.equal((await team.owner.call('putMember', { params, body: { role: 'developer' } })).status, 200)
      return signInAs(api, other)
    }
    const endings: readonly ((code: string, who: TestSession) => Promise<unknown>)[] = [
      (code, who) => who.client.call('denyDevice', { body: { user_code: code } }),
      () => team.owner.call('removeMember', { params }),
      async () => {
        await team.owner.call('removeMember', { params })
        await team.owner.call('putMember', { params, body: { role: 'viewer' } })
      },
      () => rows('delete from memberships where user_id = $1', [other.userId]),
      () => rows('update users set disabled_at = now() where user_id = $1', [other.userId]),
    ]
    for (const [n, end] of endings.entries()) {
      const who = await join()
      const { device_code, user_code } = await begin({ scopes: ['read'], organization_id: ORG })
      assert.equal((await approve(user_code, {}, who)).status, 200)
      await end(user_code, who)
      assert.deepEqual(await codeAnswer(poll(device_code)), [400, 'access_denied'], String(n))
    }
  })

  it('asks for a proof when the last one is older than five minutes', async () => {
    const who = await signInAs(api, await api.makeCaller('old'))
    const stale = () =>
      rows(`update sessions set authenticated_at = now() - interval '301 s' where id = $1`, [who.session.session_id])
    await stale()
    const { user_code } = await begin()
    const refused = await approve(user_code, {}, who)
    assert.deepEqual([refused.status, refused.body.code], [403, 'reauthentication_required'])
    const wrong = await approve(user_code, { password: 'wrong horse' }, who)
    assert.equal(wrong.body.code, 'invalid_credentials')
    assert.equal((await approve(user_code, {}, who)).body.code, 'reauthentication_required')
    assert.equal((await approve(user_code, { password: TEST_PASSWORD }, who)).status, 200)
    assert.equal((await approve((await begin()).user_code, {}, who)).status, 200)

    const { secret } = await enrolTotp(who)
    await stale()
    const another = (await begin()).user_code
    assert.equal((await approve(another, { totp_code: codeOf(secret, 5) }, who)).body.code, 'invalid_mfa_code')
    assert.equal((await approve(another, { totp_code: codeOf(secret) }, who)).status, 200)
  })

  it('lets nobody guess codes: five misses of a session, twenty of an address; a hit forgives none', async () => {
    const look = (who: TestSession, user_code: string, headers: Readonly<Record<string, string>>) =>
      codeAnswer(who.client.call('getDeviceRequest', { params: { user_code }, headers }))
    const who = await signInAs(api, await api.makeCaller('guesser'))
    const { user_code } = await begin()
    const guesses = ['BBBB-BBBB', 'bbbbbbbc', 'nonsense', 'BBBB BBBD', 'BBBB-BBBF']
    for (const guess of guesses) {
      assert.deepEqual(await look(who, guess, fromAnywhere()), [404, 'device_request_not_found'])
      if (guess !== guesses.at(-1)) assert.equal((await look(who, user_code, fromAnywhere()))[0], 200)
    }
    assert.deepEqual(await look(who, user_code, fromAnywhere()), [429, 'rate_limited'])
    const other = { body: { user_code, scopes: ['read'] }, headers: fromAnywhere() }
    assert.equal((await who.client.call('approveDevice', other)).status, 429)
    assert.equal((await who.client.call('denyDevice', { body: { user_code } })).status, 429)

    const from = fromAnywhere()
    const caller: ApiCaller = await api.makeCaller('crowd')
    for (let n = 0; n < 20; n++) {
      if (n % 5 === 0) await signInAs(api, caller)
      const crowd = n % 5 === 0 ? await signInAs(api, caller) : session
      await rows(`delete from attempts where bucket = 'device-misses'`)
      assert.equal((await look(crowd, 'BBBB-BBBB', from))[0], 404)
    }
    await rows(`delete from attempts where bucket = 'device-misses'`)
    assert.deepEqual(await look(session, user_code, from), [429, 'rate_limited'])
    assert.equal((await look(session, user_code, fromAnywhere()))[0], 200)
  })

  it('lets an address begin ten times in five minutes, over all replicas, and have fifty that wait', async () => {
    const headers = fromAnywhere()
    const ask = (at: ApiClient) => at.call('requestDeviceCode', { body: { client_name: 'x' }, headers })
    const answers = await Promise.all(Array.from({ length: 14 }, (_, n) => ask(n % 2 === 0 ? api.nobody : replica)))
    assert.equal(answers.filter(({ status }) => status === 200).length, 10)
    const refused = answers.find(({ status }) => status === 429)
    assert.ok(refused !== undefined)
    assert.equal(refused.body.code, 'rate_limited')
    assert.equal((refused.body as unknown as { error: string }).error, 'temporarily_unavailable')
    for (let round = 0; round < 5; round++) {
      await rows(`delete from attempts where bucket = 'device-code'`)
      for (let n = 0; n < 10; n++) await ask(api.nobody)
    }
    await rows(`delete from attempts where bucket = 'device-code'`)
    assert.equal((await ask(api.nobody)).status, 429)
    await rows(`update device_requests set expires_at = now()`)
    assert.equal((await ask(api.nobody)).status, 200)
  })

  it('belongs to whoever approved: others are told as little as of a code that is not there', async () => {
    const [first, second] = [session, await signInAs(api, team.admin)]
    const { user_code, device_code } = await begin()
    const answers = await Promise.all([approve(user_code, {}, first), approve(user_code, {}, second)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404])
    const loser = answers[0].status === 200 ? second : first
    assert.equal((await loser.client.call('denyDevice', { body: { user_code } })).status, 404)
    assert.equal((await poll(device_code)).status, 200)
  })
})
