import assert from 'node:assert/strict'
import type { ApiAnswer } from '../../testkit/api-answers.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { REPLICAS, sized } from '../../testkit/full.ts'
import { codeOf, enrolTotp } from '../../testkit/second-factor.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD, type TestSession } from '../../testkit/sign-in.ts'

const NEXT = 'svc-session-token'

describe('the token of a session', () => {
  let api: TestApiServer
  let replica: string
  let ada: ApiCaller
  let session: TestSession
  before(async () => {
    const environment = { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' }
    api = await startTestApiServer({ operator: false, replicas: REPLICAS, environment })
    replica = await api.startReplica()
    ada = await api.makeCaller('Ada')
    session = await signInAs(api, ada)
  })
  after(() => api.stop())

  const inDatabase = (sql: string) => api.plane.database.rows(sql, [session.session.session_id])
  const becomeDue = () => inDatabase(`update sessions set rotated_at = now() - interval '901 s' where id = $1`)
  const beReplacedLongAgo = () =>
    inDatabase(`update session_tokens set replaced_at = replaced_at - interval '61 s' where session_id = $1`)
  const client = (token: string, url = api.url): ApiClient => new ApiClient(url, token)
  let current: string
  before(() => {
    current = session.token
  })

  it('is replaced when its time has come, in the headers of any answer, also of a refusal', async () => {
    assert.equal((await client(current).call('getSession')).headers.get(NEXT), null)
    await becomeDue()
    const refused = await client(current).call('revokeToken', { params: { token: 'tok_00000000000000000000000000' } })
    assert.equal(refused.status, 404)
    const next = refused.headers.get(NEXT)
    assert.match(next ?? '', /^svc_ses_[0-9A-Za-z]{43}$/)
    assert.ok(Date.parse(refused.headers.get('svc-session-expires-at') ?? '') > Date.now())
    const { headers, body } = await client(next!).call('getSession')
    assert.equal(headers.get(NEXT), null)
    assert.ok(next!.startsWith(body.session.token_prefix))
    current = next!
  })

  it('races with nobody: fifty requests on two replicas at the moment of its change all pass, with one next token', async () => {
    for (let round = 0; round < sized(4, 200); round++) {
      await becomeDue()
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) => client(current, n % 2 === 0 ? api.url : replica).call('listTokens')),
      )
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
      const next = [...new Set(answers.map(({ headers }) => headers.get(NEXT)).filter(token => token !== null))]
      assert.equal(next.length, 1, `round ${round}`)
      const [after, before] = [
        await client(next[0]!).call('getSession'),
        await client(current, replica).call('getSession'),
      ]
      assert.deepEqual([after.status, before.status, before.headers.get(NEXT)], [200, 200, next[0]])
      current = next[0]!
    }
    const live = await inDatabase('select 1 from session_tokens where session_id = $1 and replaced_at is null')
    assert.equal(live.length, 1)
  })

  it('ends the session when it is used long after it was replaced, of whichever generation, once and for all', async () => {
    for (const generations of [1, 3]) {
      const [thief, begun] = await (async () => {
        session = await signInAs(api, ada)
        const stolen = session.token
        let token = stolen
        for (let i = 0; i < generations; i++) {
          await becomeDue()
          token = (await client(token).call('getSession')).headers.get(NEXT)!
        }
        return [stolen, token] as const
      })()
      await beReplacedLongAgo()
      const answers = await Promise.all([client(thief).call('getSession'), client(thief, replica).call('getSession')])
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body.code]),
        [
          [401, 'invalid_token'],
          [401, 'invalid_token'],
        ],
      )
      assert.equal((await client(begun).call('getSession')).status, 401)
      const events = await api.plane.database.rows(
        `select 1 from account_events where type = 'session_reuse' and metadata ->> 'session_id' = $1`,
        [session.session.session_id],
      )
      assert.equal(events.length, 1)
    }
  })

  describe('is replaced when its user proves again who they are', () => {
    type Act = (by: ApiClient, rest: { secret: string; recoveryCodes: readonly string[] }) => Promise<ApiAnswer>
    const approve = async (by: ApiClient, scopes: readonly string[]): Promise<ApiAnswer> => {
      const asked = await api.nobody.call('requestDeviceCode', {
        body: { client_name: 'coder', scope: 'read' },
        headers: fromAnywhere(),
      })
      const body = { user_code: asked.body.user_code, scopes, password: TEST_PASSWORD }
      return by.call('approveDevice', { body, headers: fromAnywhere() })
    }
    const rows: [why: string, status: number, act: Act][] = [
      [
        'with new recovery codes',
        200,
        (by, { secret }) =>
          by.call('renewRecoveryCodes', { body: { password: TEST_PASSWORD, totp_code: codeOf(secret) } }),
      ],
      [
        'as they remove a second factor',
        204,
        (by, { recoveryCodes: [recovery_code] }) =>
          by.call('removeTotp', { body: { password: TEST_PASSWORD, recovery_code } }),
      ],
      ['to approve a device', 200, by => approve(by, ['read'])],
      ['for what is refused after it', 400, by => approve(by, ['admin'])],
    ]
    /** The token before works for requests under way, and is told the next one; then it ends the session. */
    const assertReplaced = async (old: string, { headers }: ApiAnswer): Promise<void> => {
      const next = headers.get(NEXT)
      assert.ok(next !== null && next !== old, 'the answer tells no new token')
      const late = await client(old, replica).call('getSession')
      assert.deepEqual([late.status, late.headers.get(NEXT)], [200, next])
      assert.equal((await client(next).call('getSession')).status, 200)
      await beReplacedLongAgo()
      assert.equal((await client(old).call('getSession')).status, 401)
    }

    it('by the first code of an app', async () => {
      session = await signInAs(api, await api.makeCaller('Bea'))
      const begun = await session.client.call('beginTotp', { body: { password: TEST_PASSWORD } })
      const body = { code: codeOf(begun.body.secret) }
      await assertReplaced(session.token, await client(session.token).call('confirmTotp', { body }))
    })

    for (const [why, status, act] of rows)
      it(why, async () => {
        const caller = await api.makeCaller('Cat')
        session = await signInAs(api, caller)
        // By another session: the one that enrols an app has its next token from that.
        const enrolled = await enrolTotp(await signInAs(api, caller))
        const answer = await act(client(session.token), enrolled)
        assert.equal(answer.status, status, answer.text)
        await assertReplaced(session.token, answer)
      })

    it('and stays when the proof is wrong', async () => {
      const caller = await api.makeCaller('Dot')
      session = await signInAs(api, caller)
      const { secret } = await enrolTotp(await signInAs(api, caller))
      const right = [-1, 0, 1, 2].map(later => codeOf(secret, later))
      const wrong = ['000000', '111111', '222222', '333333', '444444'].find(code => !right.includes(code)) ?? ''
      for (const [password, totp_code] of [
        ['no password of mine', codeOf(secret)],
        [TEST_PASSWORD, wrong],
      ] as const) {
        const body = { password, totp_code }
        const answer = await client(session.token).call('renewRecoveryCodes', { body, headers: fromAnywhere() })
        const after = await client(session.token).call('getSession')
        assert.deepEqual([answer.status, answer.headers.get(NEXT)], [401, null])
        assert.deepEqual([after.status, after.headers.get(NEXT)], [200, null])
      }
    })

    it('while other requests are under way on two replicas: all pass, and are told the same token', async () => {
      session = await signInAs(api, await api.makeCaller('Eva'))
      for (let round = 0, token = session.token; round < sized(3, 50); round++) {
        const [proved, ...others] = await Promise.all([
          approve(client(token), ['read']),
          ...Array.from({ length: 20 }, (_, n) => client(token, n % 2 === 0 ? api.url : replica).call('getSession')),
        ])
        assert.deepEqual([...new Set([proved, ...others].map(({ status }) => status))], [200])
        const told = new Set([proved, ...others].map(({ headers }) => headers.get(NEXT)).filter(each => each !== null))
        assert.equal(told.size, 1, `round ${round}`)
        token = [...told][0]!
      }
    })
  })

  it('is not prolonged by being replaced: the absolute end stays', async () => {
    session = await signInAs(api, ada)
    await inDatabase(`update sessions set created_at = now() - interval '43190 s' where id = $1`)
    await becomeDue()
    const { headers } = await client(session.token).call('getSession')
    const end = Date.parse(headers.get('svc-session-expires-at') ?? '')
    assert.ok(end - Date.now() < 11_000)
    await inDatabase(`update sessions set created_at = created_at - interval '11 s' where id = $1`)
    assert.equal((await client(headers.get(NEXT)!).call('getSession')).status, 401)
  })
})
