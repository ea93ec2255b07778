import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { REPLICAS, sized } from '../../testkit/full.ts'
import { signInAs, TEST_PASSWORD, type TestSession } from '../../testkit/sign-in.ts'

const NEXT = 'seven wet stones at the pier'

describe('passwords', () => {
  let api: TestApiServer
  let replica: string
  let operator: TestSession
  before(async () => {
    api = await startTestApiServer({
      operator: false,
      replicas: REPLICAS,
      environment: {
        SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
        SERVICE_CONSOLE_URL: 'https://console.example.com/',
        SERVICE_LOGIN_MAX_FAILURES: '3',
      },
    })
    replica = await api.startReplica()
    operator = await signInAs(api, await api.makeCaller('operator', { isOperator: true }))
  })
  after(() => api.stop())

  let lastAddress = 0
  /** Each call comes from an address of its own, as a trusted proxy says. */
  const from = () => ({ headers: { 'X-Forwarded-For': `198.51.100.${(lastAddress = (lastAddress % 250) + 1)}` } })
  const signIn = (caller: ApiCaller, password: string, client = api.nobody) =>
    client.call('signIn', { body: { email: caller.email, password }, ...from() })
  const change = (client: ApiClient, current: string, next: string) =>
    client.call('changePassword', { body: { current_password: current, new_password: next }, ...from() })
  const eventsOf = async (userId: string): Promise<readonly string[]> =>
    (
      await api.plane.database.rows<{ type: string }>(
        `select type from account_events where user_id = $1 and type <> 'create_user' order by id`,
        [userId],
      )
    ).map(({ type }) => type)

  describe('that are changed', () => {
    it('end all other sessions, and the token of the one that calls', async () => {
      const ada = await api.makeCaller('Ada')
      const [own, other] = [await signInAs(api, ada), await signInAs(api, ada)]
      const answer = await change(own.client, TEST_PASSWORD, NEXT)
      assert.equal(answer.status, 204, answer.text)
      const next = answer.headers.get('svc-session-token')
      assert.ok(next !== null && next !== own.token)
      assert.equal((await other.client.call('getSession')).body.code, 'invalid_token')
      const { body } = await new ApiClient(api.url, next).call('getSession')
      assert.equal(body.session.session_id, own.session.session_id)
      // Requests under way still come through for a moment, and are told the same next token.
      const late = await new ApiClient(api.url, own.token).call('getSession')
      assert.deepEqual([late.status, late.headers.get('svc-session-token')], [200, next])
      assert.deepEqual([(await signIn(ada, TEST_PASSWORD)).status, (await signIn(ada, NEXT)).status], [401, 200])
      assert.deepEqual(
        (await eventsOf(ada.userId)).filter(type => type !== 'sign_in'),
        ['password_changed', 'sign_in_failed'],
      )
    })

    it('need the current one: wrong ones count like failed sign-ins, up to the lock', async () => {
      const bob = await api.makeCaller('Bob')
      const { client } = await signInAs(api, bob)
      for (let i = 0; i < 3; i++)
        assert.equal((await change(client, `wrong ${i}`, NEXT)).body.code, 'invalid_credentials')
      assert.equal((await change(client, TEST_PASSWORD, NEXT)).body.code, 'invalid_credentials')
      assert.equal((await signIn(bob, TEST_PASSWORD)).status, 401)
      assert.deepEqual(await eventsOf(bob.userId), [
        'sign_in',
        'sign_in_failed',
        'sign_in_failed',
        'locked',
        'sign_in_failed',
        'sign_in_failed',
      ])
    })

    it('have to keep the rules, which name the field', async () => {
      const eve = await api.makeCaller('Eve')
      const { client } = await signInAs(api, eve)
      for (const [next, fault] of [
        ['too short', 'too_short'],
        ['123456789012', 'common_password'],
        [eve.email, 'contains_context'],
      ] as const) {
        const { status, body, text } = await change(client, TEST_PASSWORD, next)
        assert.deepEqual([status, body.code], [400, 'password_not_allowed'])
        assert.deepEqual([body.errors?.[0]?.pointer, body.errors?.[0]?.code], ['#/new_password', fault])
        assert.ok(!text.includes(next))
      }
      assert.equal((await signIn(eve, TEST_PASSWORD)).status, 200)
    })

    it('at the same moment on two replicas are changed by one of them', async () => {
      for (let i = 0; i < sized(1, 8); i++) {
        const kim = await api.makeCaller('Kim')
        const [here, there] = [await signInAs(api, kim), await signInAs(api, kim, replica)]
        const answers = await Promise.all([
          change(here.client, TEST_PASSWORD, `${NEXT}, here`),
          change(there.client, TEST_PASSWORD, `${NEXT}, there`),
        ])
        assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 401])
        const winner = answers[0].status === 204 ? 'here' : 'there'
        assert.equal((await signIn(kim, `${NEXT}, ${winner}`)).status, 200)
      }
    })

    it('leave no session behind that a sign-in with the old one began at the same moment, on two replicas', async () => {
      for (let i = 0; i < sized(2, 8); i++) {
        const zoe = await api.makeCaller('Zoe')
        const own = await signInAs(api, zoe)
        const [changed, ...begun] = await Promise.all([
          change(own.client, TEST_PASSWORD, NEXT),
          ...[api.url, replica].map(url => signIn(zoe, TEST_PASSWORD, new ApiClient(url))),
        ])
        assert.equal(changed.status, 204)
        for (const { status, body } of begun)
          if (status === 200) assert.equal((await new ApiClient(api.url, body.token).call('getSession')).status, 401)
      }
    })
  })

  describe('that an operator lets somebody set anew', () => {
    const issue = async (caller: ApiCaller) => {
      const answer = await operator.client.call('issuePasswordReset', {
        body: { email: caller.email.toUpperCase(), admin_password: TEST_PASSWORD },
        ...from(),
      })
      assert.equal(answer.status, 201, answer.text)
      assert.match(answer.body.reset_url, /^https:\/\/console\.example\.com\/reset-password\/svc_rst_[0-9A-Za-z]{43}$/)
      const token = answer.body.reset_url.replace(/^.*\//, '')
      assert.ok(token.startsWith(answer.body.token_prefix))
      return { ...answer.body, token }
    }
    const complete = (token: string, password = NEXT, client = api.nobody) =>
      client.call('completePasswordReset', { body: { token, new_password: password }, ...from() })
    const preview = (token: string) => api.nobody.call('previewPasswordReset', { body: { token }, ...from() })

    it('are set once; every session ends, a lock too, and none begins', async () => {
      const gil = await api.makeCaller('Gil')
      const old = await signInAs(api, gil)
      for (let i = 0; i < 3; i++) await signIn(gil, 'wrong password')
      const { token, expires_at } = await issue(gil)
      const hours = (Date.parse(expires_at) - Date.now()) / 3_600_000
      assert.ok(hours > 23.9 && hours <= 24.1)
      const shown = await preview(token)
      assert.deepEqual(shown.body, { email_hint: `${gil.email.charAt(0)}***@example.com`, expires_at })
      const bad = await complete(token, 'too short')
      assert.deepEqual([bad.body.code, bad.body.errors?.[0]?.pointer], ['password_not_allowed', '#/new_password'])
      const done = await complete(token)
      assert.deepEqual([done.status, done.text], [204, ''])
      assert.equal((await old.client.call('getSession')).status, 401)
      assert.equal((await complete(token)).body.code, 'invalid_reset_token')
      assert.equal((await preview(token)).body.code, 'invalid_reset_token')
      assert.deepEqual([(await signIn(gil, TEST_PASSWORD)).status, (await signIn(gil, NEXT)).status], [401, 200])
      assert.ok((await eventsOf(gil.userId)).includes('password_reset_requested'))
      assert.ok((await eventsOf(gil.userId)).includes('password_reset'))
    })

    it('are set by one of many who have the link, on two replicas', async () => {
      for (let i = 0; i < sized(1, 5); i++) {
        const hal = await api.makeCaller('Hal')
        const { token } = await issue(hal)
        const there = new ApiClient(replica)
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, n) => complete(token, `${NEXT} ${n}`, n % 2 === 0 ? api.nobody : there)),
        )
        assert.equal(answers.filter(({ status }) => status === 204).length, 1)
        assert.equal((await signIn(hal, `${NEXT} ${answers.findIndex(({ status }) => status === 204)}`)).status, 200)
      }
    })

    it('are not set with a link that was replaced, is too old, is none, or whose account was disabled or changed its password', async () => {
      const ivy = await api.makeCaller('Ivy')
      const first = await issue(ivy)
      const second = await issue(ivy)
      await api.plane.database.rows(`update password_resets set expires_at = now() where user_id = $1`, [ivy.userId])
      const third = await issue(await api.makeCaller('third'))
      const jan = await api.makeCaller('Jan')
      const ofDisabled = await issue(jan)
      await api.plane.database.rows('update users set disabled_at = now() where user_id = $1', [jan.userId])
      const leo = await api.makeCaller('Leo')
      const own = await signInAs(api, leo)
      const voided = await issue(leo)
      assert.equal((await change(own.client, TEST_PASSWORD, NEXT)).status, 204)
      const tokens = [
        first.token,
        second.token,
        `${third.token.slice(0, -1)}_`,
        'svc_rst_',
        ofDisabled.token,
        voided.token,
      ]
      for (const token of tokens) {
        assert.equal((await complete(token)).body.code, 'invalid_reset_token')
        assert.equal((await preview(token)).body.code, 'invalid_reset_token')
      }
    })

    it('need the operator’s own password, an account, and are not for the operator', async () => {
      const ask = (email: string, password: string, client = operator.client) =>
        client.call('issuePasswordReset', { body: { email, admin_password: password }, ...from() })
      const mia = await api.makeCaller('Mia')
      assert.equal((await ask(mia.email, 'wrong password')).body.code, 'invalid_credentials')
      assert.equal((await ask('nobody@example.com', TEST_PASSWORD)).body.code, 'user_not_found')
      const own = await ask(operator.user.email ?? '', TEST_PASSWORD)
      assert.deepEqual([own.status, own.body.code], [403, 'own_account'])
      const { client } = await signInAs(api, mia)
      const refused = await ask(operator.user.email ?? '', TEST_PASSWORD, client)
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'])
    })

    it('keep no token but its digest, and write none down', async () => {
      const { token } = await issue(await api.makeCaller('Nia'))
      await complete(token, 'too short')
      const kept = await api.plane.database.rows<{ text: string }>(
        'select r::text as text from password_resets r union all select e::text from account_events e',
      )
      for (const text of [...kept.map(row => row.text), ...api.logged]) assert.ok(!text.includes(token.slice(16)))
    })
  })

  it('and what happened around them is told to operators, page by page', async () => {
    const seen: number[] = []
    let after: number | null = 0
    const page = (from: number) => operator.client.call('listLoginEvents', { query: { after: from, limit: 7 } })
    while (after !== null) {
      const answer: Awaited<ReturnType<typeof page>> = await page(after)
      assert.equal(answer.status, 200)
      seen.push(...answer.body.events.map(({ id }) => id))
      after = answer.body.next_cursor
    }
    assert.deepEqual(
      seen,
      seen.map((_, i) => i + 1),
    )
    const { client } = await signInAs(api, await api.makeCaller('nosy'))
    assert.equal((await client.call('listLoginEvents')).body.code, 'forbidden')
  })
})
