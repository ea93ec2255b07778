import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiCaller, startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'

describe('account tokens', () => {
  let api: TestApiServer
  let caller: ApiCaller
  let stranger: ApiCaller
  before(async () => {
    api = await startTestApiServer({ operator: false })
    caller = await api.makeCaller('caller')
    stranger = await api.makeCaller('stranger')
  })
  after(() => api.stop())

  const works = async (token: string): Promise<boolean> =>
    (await new ApiClient(api.url, token).call('listTokens')).status === 200

  it('createToken answers the secret once; it works, and the list shows the rest of it', async () => {
    const made = await caller.call('createToken', { body: { name: 'laptop', ttl: '1h' } })
    assert.equal(made.status, 201)
    assert.match(made.body.token, /^svc_pat_[0-9A-Za-z]{49}$/)
    assert.ok(made.body.token.startsWith(made.body.token_prefix) && made.body.token_prefix.length === 16)
    assert.ok(Math.abs((made.body.expires_at ?? 0) - made.body.created_at - 3600) <= 1)
    assert.ok(await works(made.body.token))
    const { text, body } = await caller.call('listTokens')
    assert.ok(!text.includes(made.body.token))
    assert.deepEqual(
      body.tokens.map(token => token.name),
      ['laptop', 'caller'],
      'newest first',
    )
  })

  it('a repeated createToken shows the same secret, another body under its key is refused', async () => {
    const request = { body: { name: 'ci' }, key: 'make-ci' }
    const [first, again] = [await caller.call('createToken', request), await caller.call('createToken', request)]
    assert.equal(again.text, first.text)
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    const other = await caller.call('createToken', { body: { name: 'other' }, key: 'make-ci' })
    assert.deepEqual([other.status, other.body.code], [422, 'idempotency_key_reused'])
    const kept = await api.plane.database.rows<{ body: string }>(
      `select encode(body, 'escape') as body from idempotency_keys where body is not null`,
    )
    assert.ok(kept.length > 0)
    assert.ok(
      kept.every(row => !row.body.includes('svc_pat_')),
      'no secret is kept in the clear',
    )
  })

  it('revokeToken holds at once, and repeating it answers the same', async () => {
    const made = await caller.call('createToken', { body: { name: 'short' } })
    const params = { token: made.body.id }
    const revoked = await caller.call('revokeToken', { params })
    assert.equal(revoked.status, 200)
    assert.ok(revoked.body.revoked_at !== null)
    assert.equal(await works(made.body.token), false)
    const again = await caller.call('revokeToken', { params })
    assert.deepEqual(again.body, revoked.body)
    const { body } = await caller.call('listTokens')
    assert.ok(body.tokens.some(token => token.id === made.body.id && token.revoked_at !== null))
  })

  it('a token may revoke itself', async () => {
    const made = await caller.call('createToken', { body: { name: 'self' } })
    const itself = new ApiClient(api.url, made.body.token)
    assert.equal((await itself.call('revokeToken', { params: { token: made.body.id } })).status, 200)
    assert.equal((await itself.call('listTokens')).status, 401)
  })

  it('an agent’s token may revoke itself and no other of its user', async () => {
    const made = await caller.call('createToken', { body: { name: 'agent', scopes: ['admin'], ttl: '1h' } })
    const agent = new ApiClient(api.url, made.body.token)
    const refused = await agent.call('revokeToken', { params: { token: caller.tokenId } })
    assert.deepEqual([refused.status, refused.body.code], [403, 'credential_not_allowed'])
    assert.ok(await works(caller.token))
    assert.equal((await agent.call('revokeToken', { params: { token: made.body.id } })).status, 200)
  })

  it('are 500 at most, those that are over not counted', async () => {
    const collector = await api.makeCaller('collector')
    await api.plane.database.rows(
      `insert into tokens (id, user_id, kind, name, digest, token_prefix, expires_at)
       select 'tok_' || lpad(n::text, 26, '0'), $1, 'personal', 'many', sha256(n::text::bytea), 'svc_pat_',
         case when n <= 10 then now() - interval '1 day' end
       from generate_series(1, 508) n`,
      [collector.userId],
    )
    const last = await collector.call('createToken', { body: { name: 'the last' } })
    assert.equal(last.status, 201, last.text)
    const refused = await collector.call('createToken', { body: { name: 'one too many' } })
    assert.deepEqual([refused.status, refused.body.code], [422, 'quota_exceeded'])
    await collector.call('revokeToken', { params: { token: last.body.id } })
    assert.equal((await collector.call('createToken', { body: { name: 'in its place' } })).status, 201)
  })

  it('a token made by a token does not outlive it', async () => {
    const short = await caller.call('createToken', { body: { name: 'short', ttl: '30m' } })
    const maker = new ApiClient(api.url, short.body.token)
    const forever = await maker.call('createToken', { body: { name: 'forever' } })
    assert.deepEqual([forever.status, forever.body.code], [400, 'validation_failed'])
    assert.equal((await maker.call('createToken', { body: { name: 'longer', ttl: '1h' } })).status, 400)
  })

  it('an expired token and one of a disabled user are like no token', async () => {
    const made = await caller.call('createToken', { body: { name: 'past', expires_in_days: 1 } })
    await api.plane.database.rows(`update tokens set expires_at = now() - interval '1 second' where id = $1`, [
      made.body.id,
    ])
    assert.equal(await works(made.body.token), false)
    const leaver = await api.makeCaller('leaver')
    await api.plane.database.rows(`update users set disabled_at = now() where user_id = $1`, [leaver.userId])
    assert.equal(await works(leaver.token), false)
  })

  it('another user’s token cannot be seen or revoked', async () => {
    const answer = await stranger.call('revokeToken', { params: { token: caller.tokenId } })
    assert.deepEqual([answer.status, answer.body.code], [404, 'token_not_found'])
    assert.ok(await works(caller.token))
    const { body } = await stranger.call('listTokens')
    assert.deepEqual(
      body.tokens.map(token => token.id),
      [stranger.tokenId],
    )
  })

  it('notes when a token was last used, a moment later and not at every use', async () => {
    await Promise.all(Array.from({ length: 20 }, () => stranger.call('listTokens')))
    let lastUsedAt: number | null = null
    while (lastUsedAt === null) lastUsedAt = (await stranger.call('listTokens')).body.tokens[0]?.last_used_at ?? null
    const row = await api.plane.database.row<{ at: Date }>(`select last_used_at as at from tokens where id = $1`, [
      stranger.tokenId,
    ])
    await stranger.call('listTokens')
    await api.server.stop()
    const later = await api.plane.database.row<{ at: Date }>(`select last_used_at as at from tokens where id = $1`, [
      stranger.tokenId,
    ])
    assert.deepEqual(later?.at, row?.at)
  })
})
