import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { REPLICAS } from '../../testkit/full.ts'
import { givePassword, signInAs, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { disableUser } from '../commands/disable-user.ts'

/** Each caller comes from an address of its own, as a trusted proxy says. */
let lastAddress = 0
const from = (
  address = `203.0.113.${(lastAddress = (lastAddress % 250) + 1)}`,
): { headers: Record<string, string> } => ({
  headers: { 'X-Forwarded-For': address },
})

describe('the login', () => {
  let api: TestApiServer
  let ada: ApiCaller
  before(async () => {
    api = await startTestApiServer({
      operator: false,
      replicas: REPLICAS,
      environment: { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' },
    })
    ada = await api.makeCaller('Ada')
    await givePassword(api, ada.userId)
  })
  after(() => api.stop())

  const signIn = (email: string, password: string, address?: string) =>
    api.nobody.call('signIn', { body: { email, password }, ...from(address) })
  const events = (userId: string) =>
    api.plane.database.rows<{ type: string; metadata: Record<string, unknown> }>(
      'select type, metadata from account_events where user_id = $1 order by id',
      [userId],
    )
  const failures = async (userId: string): Promise<string[]> =>
    (await events(userId)).map(({ type }) => type).filter(type => type === 'sign_in_failed' || type === 'locked')

  it('begins a session, whose token calls everything that its user may', async () => {
    const answer = await signIn(ada.email.toUpperCase(), TEST_PASSWORD)
    assert.equal(answer.status, 200, answer.text)
    assert.match(answer.body.token, /^svc_ses_[0-9A-Za-z]{43}$/)
    assert.ok(answer.body.token.startsWith(answer.body.token_prefix))
    const client = new ApiClient(api.url, answer.body.token)
    const { body } = await client.call('getSession')
    assert.deepEqual(body.user, answer.body.user)
    assert.deepEqual([body.user.email, body.user.mfa_enabled, body.session.current], [ada.email, false, true])
    assert.equal((await client.call('listTokens')).status, 200)
    const kept = await api.plane.database.rows<{ text: string }>(
      `select s::text as text from sessions s union all select t::text from session_tokens t union all select e::text from account_events e`,
    )
    assert.ok(kept.every(({ text }) => !text.includes(answer.body.token.slice(20))))
  })

  it('answers an unknown, a wrong, a locked and a disabled account, and one without a password, alike', async () => {
    const [locked, disabled, without] = [
      await api.makeCaller('locked'),
      await api.makeCaller('disabled'),
      await api.makeCaller('without'),
    ]
    await givePassword(api, locked.userId)
    await givePassword(api, disabled.userId)
    await api.plane.database.rows('update users set disabled_at = now() where user_id = $1', [disabled.userId])
    for (let i = 0; i < 10; i++) await signIn(locked.email, 'wrong password!')
    /** All bytes of an answer as they came, but for the request's id and the second. */
    const bytesOf = async (email: string, password: string): Promise<string> => {
      const body = JSON.stringify({ email, password })
      const { headers } = from()
      const head = { ...headers, Host: 'x', Connection: 'close', 'Content-Type': 'application/json' }
      const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
      const length = `Content-Length: ${body.length}\r\n\r\n`
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
      socket.write(`POST /v1/auth/builtin/sign-in HTTP/1.1\r\n${lines.join('')}${length}${body}`)
      const answer = await text(socket)
      return answer
        .replaceAll(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, '<request>')
        .replace(/\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT/, '<now>')
    }
    const answers = [
      await bytesOf('nobody@example.com', TEST_PASSWORD),
      await bytesOf(ada.email, 'wrong password!'),
      await bytesOf(locked.email, TEST_PASSWORD),
      await bytesOf(disabled.email, TEST_PASSWORD),
      await bytesOf(without.email, TEST_PASSWORD),
    ]
    assert.deepEqual(answers, Array(5).fill(answers[0]))
    assert.match(
      answers[0] ?? '',
      /^HTTP\/1\.1 401 .*?\r\nWWW-Authenticate: Bearer realm="svc", error="invalid_credentials"\r\n.*"code":"invalid_credentials"/s,
    )
  })

  it('locks an account after ten failures, for its time, and says so in its log', async () => {
    const bob = await api.makeCaller('Bob')
    await givePassword(api, bob.userId)
    for (let i = 0; i < 9; i++) await signIn(bob.email, `wrong ${i}`)
    // The ninth does not lock, and being right forgets them all.
    assert.equal((await signIn(bob.email, TEST_PASSWORD)).status, 200)
    for (let i = 0; i < 10; i++) await signIn(bob.email, `wrong ${i}`)
    assert.deepEqual((await failures(bob.userId)).slice(-2), ['sign_in_failed', 'locked'])
    assert.equal((await signIn(bob.email, TEST_PASSWORD)).status, 401)
    // Guessing on does not prolong it.
    await api.plane.database.rows(
      `update sign_in_failures set locked_at = locked_at - interval '15 minutes', locked_until = locked_until - interval '15 minutes',
         failed = array(select f - interval '15 minutes' from unnest(failed) f)`,
    )
    assert.equal((await signIn(bob.email, TEST_PASSWORD)).status, 200)
  })

  it('locks an account for all replicas: five failures at each make ten', async () => {
    const replica = new ApiClient(await api.startReplica())
    const dora = await api.makeCaller('Dora')
    await givePassword(api, dora.userId)
    const at = (who: ApiClient, password: string) =>
      who.call('signIn', { body: { email: dora.email, password }, ...from() })
    for (let n = 0; n < 10; n++) {
      assert.deepEqual(
        await failures(dora.userId),
        Array.from({ length: n }, () => 'sign_in_failed'),
      )
      assert.equal((await at(n % 2 === 0 ? api.nobody : replica, 'wrong password!')).status, 401)
    }
    assert.equal((await failures(dora.userId)).at(-1), 'locked')
    for (const who of [api.nobody, replica])
      assert.equal((await at(who, TEST_PASSWORD)).body.code, 'invalid_credentials')
    await api.plane.database.rows('delete from sign_in_failures')
    for (const who of [replica, api.nobody]) assert.equal((await at(who, TEST_PASSWORD)).status, 200)
  })

  it('counts guesses that come at the same moment one by one, and lets the right one in among them', async () => {
    const carol = await api.makeCaller('Carol')
    await givePassword(api, carol.userId)
    const guesses = await Promise.all(Array.from({ length: 15 }, (_, i) => signIn(carol.email, `wrong ${i}`)))
    assert.ok(guesses.every(({ status }) => status === 401))
    const row = await api.plane.database.row<{ n: number }>(
      `select cardinality(failed) as n from sign_in_failures where account_key = sha256($1::bytea)`,
      [carol.email],
    )
    assert.equal(row?.n, 10, 'what came after the lock does not count')
    assert.equal((await failures(carol.userId)).filter(type => type === 'locked').length, 1)
    const dan = await api.makeCaller('Dan')
    await givePassword(api, dan.userId)
    const mixed = await Promise.all(
      Array.from({ length: 8 }, (_, i) => signIn(dan.email, i % 2 === 0 ? TEST_PASSWORD : 'wrong password!')),
    )
    assert.deepEqual(
      mixed.map(({ status }) => status),
      [200, 401, 200, 401, 200, 401, 200, 401],
    )
  })

  it('lets thirty right ones in at the same moment, from as many addresses at two replicas: they lock nobody out', async () => {
    const replica = new ApiClient(await api.startReplica())
    const max = await api.makeCaller('Max')
    await givePassword(api, max.userId)
    const body = { email: max.email, password: TEST_PASSWORD }
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? api.nobody : replica).call('signIn', { body, ...from() })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array(30).fill(200),
    )
    assert.deepEqual(await failures(max.userId), [])
    assert.equal((await signIn(max.email, TEST_PASSWORD)).status, 200)
  })

  it('takes a password however often it is proved again: being right is no failure, and forgives none', async () => {
    const ned = await api.makeCaller('Ned')
    const { client } = await signInAs(api, ned)
    const prove = (password: string) => client.call('beginTotp', { body: { password }, ...from() })
    for (let i = 0; i < 9; i++) assert.equal((await prove(`wrong ${i}`)).status, 401)
    const proofs = await Promise.all(Array.from({ length: 12 }, () => prove(TEST_PASSWORD)))
    assert.ok(proofs.every(({ status }) => status === 200))
    assert.deepEqual(await failures(ned.userId), Array(9).fill('sign_in_failed'))
    assert.equal((await prove('wrong password!')).status, 401)
    assert.equal((await prove(TEST_PASSWORD)).body.code, 'invalid_credentials')
    assert.equal((await failures(ned.userId))[9], 'locked')
  })

  it('lets an address try twenty times in five minutes, on all replicas together', async () => {
    const replica = new ApiClient(await api.startReplica())
    const body = { email: 'someone@example.com', password: 'wrong password!' }
    const one = from('198.51.100.1')
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? api.nobody : replica).call('signIn', { body, ...one })),
    )
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(refused.length, 4)
    assert.ok(refused.every(each => each.body.code === 'sign_in_rate_limited'))
    const wait = Number(refused[0]?.headers.get('retry-after'))
    assert.ok(wait > 280 && wait <= 300, `${wait}`)
    assert.equal((await api.nobody.call('signIn', { body, ...from('198.51.100.2') })).status, 401)
  })

  it('refuses bodies that are none, and says nothing of what was typed', async () => {
    for (const [body, pointer] of [
      [{ email: 'Ada', password: 'x' }, '#/email'],
      [{ email: 'ada@exämple.com', password: 'x' }, '#/email'],
      [{ email: 'ada@example.com' }, '#/password'],
      [{ email: 'ada@example.com', password: '' }, '#/password'],
      [{ email: 'ada@example.com', password: 'secret-canary\u0000' }, '#/password'],
      [{ email: 'ada@example.com', password: 'x', more: 1 }, '#/more'],
    ] as const) {
      const answer = await api.nobody.call('signIn', { body, ...from() })
      assert.deepEqual([answer.status, answer.body.errors?.[0]?.pointer], [400, pointer])
      assert.ok(!answer.text.includes('canary'))
    }
    const large = await api.nobody.call('signIn', { body: { email: 'a@b.c', password: 'x'.repeat(9000) }, ...from() })
    assert.equal(large.status, 413)
  })

  it('takes a password however old it is, and asks for no other', async () => {
    const elder = await api.makeCaller('Elder')
    await givePassword(api, elder.userId)
    await api.plane.database.rows(`update passwords set changed_at = now() - interval '20 years' where user_id = $1`, [
      elder.userId,
    ])
    const { status, body } = await signIn(elder.email, TEST_PASSWORD)
    assert.equal(status, 200)
    assert.equal((await new ApiClient(api.url, body.token).call('listOrganizations')).status, 200)
  })

  it('renews a hash that was made with other parameters, once its password is at hand', async () => {
    const { hash } = await import('@node-rs/argon2')
    const eve = await api.makeCaller('Eve')
    const old = await hash(TEST_PASSWORD, { memoryCost: 20_000, timeCost: 3, parallelism: 1 })
    await api.plane.database.rows('insert into passwords (user_id, hash) values ($1, $2)', [eve.userId, old])
    assert.equal((await signIn(eve.email, TEST_PASSWORD)).status, 200)
    for (;;) {
      const row = await api.plane.database.row<{ hash: string }>('select hash from passwords where user_id = $1', [
        eve.userId,
      ])
      if (row?.hash.startsWith('$argon2id$v=19$m=19456,t=2,p=1$') === true) break
    }
    assert.equal((await signIn(eve.email, TEST_PASSWORD)).status, 200)
  })

  it('writes no password into its log', async () => {
    await signIn(ada.email, 'canary-of-a-password')
    assert.ok(api.logged.every(line => !line.includes('canary-of-a-password') && !line.includes(TEST_PASSWORD)))
  })

  describe('an account that is disabled', () => {
    const set = (who: string, disabled: boolean) => disableUser(api.plane.database, { who, disabled })

    it('signs in no more, and nothing of it works until it is enabled; its sessions do not come back', async () => {
      const kit = await api.makeCaller('Kit')
      const { client } = await signInAs(api, kit)
      const states = async () => [
        (await client.call('getSession')).status,
        (await kit.call('listTokens')).status,
        (await signIn(kit.email, TEST_PASSWORD)).status,
      ]
      assert.deepEqual(await states(), [200, 200, 200])
      const done = await set(kit.email.toUpperCase(), true)
      assert.deepEqual(done, { userId: kit.userId, changed: true, sessionsEnded: 2 })
      assert.deepEqual(await states(), [401, 401, 401])
      assert.deepEqual(await set(`user:${kit.userId}`, true), { ...done, changed: false, sessionsEnded: 0 })
      assert.equal((await set(`user:${kit.userId}`, false)).changed, true)
      assert.deepEqual(await states(), [401, 200, 200])
      assert.deepEqual(
        (await events(kit.userId)).map(({ type }) => type).filter(type => type.startsWith('user_')),
        ['user_disabled', 'user_enabled'],
      )
    })

    it('is one that is there', async () => {
      for (const who of ['nobody@example.com', 'user:usr_01234567890123456789ab', ''])
        await assert.rejects(set(who, true), isCode('user_not_found'))
    })
  })

  describe('sessions', () => {
    it('are listed, and ended one by one, or all but this one', async () => {
      const fay = await api.makeCaller('Fay')
      const [first, second, third] = [await signInAs(api, fay), await signInAs(api, fay), await signInAs(api, fay)]
      const listed = await third.client.call('listSessions')
      assert.deepEqual(
        listed.body.sessions.map(each => [each.session_id, each.current]),
        [
          [third.session.session_id, true],
          [second.session.session_id, false],
          [first.session.session_id, false],
        ],
      )
      const params = { session: first.session.session_id }
      assert.equal((await third.client.call('revokeSession', { params })).status, 204)
      assert.equal((await first.client.call('getSession')).status, 401)
      assert.equal((await third.client.call('revokeSession', { params })).body.code, 'session_not_found')
      const others = await third.client.call('revokeOtherSessions')
      assert.deepEqual(others.body, { revoked: 1 })
      assert.deepEqual(
        [(await second.client.call('getSession')).status, (await third.client.call('getSession')).status],
        [401, 200],
      )
      assert.equal((await third.client.call('signOut')).status, 204)
      const again = await third.client.call('signOut')
      assert.deepEqual([again.status, again.body.code], [401, 'invalid_token'])
      assert.deepEqual(
        (await events(fay.userId)).map(({ type }) => type).filter(type => type !== 'create_user' && type !== 'sign_in'),
        ['session_revoked', 'session_revoked', 'sign_out'],
      )
    })

    it('of others are not there', async () => {
      const [gil, hal] = [
        await signInAs(api, await api.makeCaller('Gil')),
        await signInAs(api, await api.makeCaller('Hal')),
      ]
      const answer = await gil.client.call('revokeSession', { params: { session: hal.session.session_id } })
      assert.deepEqual([answer.status, answer.body.code], [404, 'session_not_found'])
      assert.equal((await hal.client.call('getSession')).status, 200)
    })

    it('are ended by an operator, whosever they are, and the log says who did it', async () => {
      const operator = await api.makeCaller('Op', { isOperator: true })
      const ops = await signInAs(api, operator)
      const jan = await api.makeCaller('Jan')
      const [first, second] = [await signInAs(api, jan), await signInAs(api, jan)]
      const params = { session: first.session.session_id }
      assert.equal((await ops.client.call('revokeSession', { params })).status, 204)
      assert.equal((await first.client.call('getSession')).status, 401)
      assert.equal((await second.client.call('getSession')).status, 200)
      assert.equal((await ops.client.call('revokeSession', { params })).body.code, 'session_not_found')
      const { events: told } = (await ops.client.call('listLoginEvents', { query: { limit: 200 } })).body
      const ended = told.filter(
        ({ type, metadata }) => type === 'session_revoked' && metadata['revoked_by'] !== undefined,
      )
      assert.deepEqual(
        ended.map(({ user_id, metadata }) => [user_id, metadata['session_id'], metadata['revoked_by']]),
        [[jan.userId, params.session, operator.userId]],
      )
    })

    it('end when idle, when they are old, and with their user', async () => {
      const ivy = await api.makeCaller('Ivy')
      const [idle, old, disabled] = [await signInAs(api, ivy), await signInAs(api, ivy), await signInAs(api, ivy)]
      const age = (id: string, column: string, by: string) =>
        api.plane.database.rows(`update sessions set ${column} = ${column} - $2::interval where id = $1`, [id, by])
      await age(idle.session.session_id, 'last_used_at', '7140 s')
      assert.equal((await idle.client.call('getSession')).status, 200)
      await age(idle.session.session_id, 'last_used_at', '7201 s')
      assert.equal((await idle.client.call('getSession')).status, 401)
      await age(old.session.session_id, 'created_at', '43201 s')
      assert.equal((await old.client.call('getSession')).status, 401)
      await api.plane.database.rows('update users set disabled_at = now() where user_id = $1', [ivy.userId])
      assert.equal((await disabled.client.call('getSession')).status, 401)
    })

    it('are fifty at most: the one used longest ago makes room', async () => {
      const kim = await api.makeCaller('Kim')
      const first = await signInAs(api, kim)
      await api.plane.database.rows(
        `insert into sessions (id, user_id, method, token_prefix, client_ip, last_used_at)
         select 'ses_' || lpad(n::text, 26, '0'), $1, 'password', 'svc_ses_', '::1', now() + interval '1 s' from generate_series(1, 49) n`,
        [kim.userId],
      )
      assert.equal((await first.client.call('getSession')).status, 200)
      await signInAs(api, kim)
      assert.equal((await first.client.call('getSession')).status, 401)
    })
  })
})
