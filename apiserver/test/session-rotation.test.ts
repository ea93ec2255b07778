import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { sized } from '../../testkit/full.ts'
import { signInAs, type TestSession } from '../../testkit/sign-in.ts'

const NEXT = 'svc-session-token'

describe('the token of a session', () => {
  let api: TestApiServer
  let replica: string
  let ada: ApiCaller
  let session: TestSession
  before(async () => {
    api = await startTestApiServer({ operator: false })
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
