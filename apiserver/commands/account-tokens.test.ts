import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { tokenDigest, tokenKindOf } from '../../lib/credentials/token.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld } from '../../testkit/command-world.ts'
import type { CreateTokenBody } from '../contract/account-tokens.ts'
import { sweepKeys } from '../store/idempotency.ts'
import { listTokens } from '../store/tokens.ts'
import { findUser } from '../store/users.ts'
import type { Principal } from './call.ts'
import { createToken } from './create-token.ts'
import { type MakeUserInput, makeUser } from './make-user.ts'
import { revokeToken } from './revoke-token.ts'

describe('account tokens', () => {
  let world: CommandWorld
  before(async () => (world = await commandWorld()))
  after(() => world.stop())

  const create = (as: Principal, body: Partial<CreateTokenBody> = {}, key?: string) => {
    const whole = { name: 'laptop', ...body }
    return createToken(world.deps, world.call(as, { key, body: whole }), whole)
  }
  const count = async (text: string, values: readonly unknown[] = []): Promise<number> =>
    (await world.plane.database.row<{ n: number }>(`select count(*) as n from ${text}`, values))!.n
  const accountEvents = (tokenId: string) =>
    world.plane.database.rows<{ type: string; metadata: Record<string, unknown> }>(
      `select type, metadata from account_events where metadata ->> 'token_id' = $1 order by id`,
      [tokenId],
    )
  const inTheFuture = (sql: string) => world.plane.database.rows(sql)

  it('show their secret once, keep its digest, and leave an event without it', async () => {
    const ada = await world.user()
    const made = bodyOf(await create(ada, { ttl: '30d' }))
    assert.ok(tokenKindOf(made.token) === 'personal')
    assert.ok(made.token.startsWith(made.token_prefix))
    assert.equal(made.expires_at! - made.created_at, 30 * 86_400)
    assert.equal(await count('tokens where digest = $1 and id = $2', [tokenDigest(made.token), made.id]), 1)
    const events = await accountEvents(made.id)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['create_token'],
    )
    const everything = await world.plane.database.rows<{ text: string | null }>(
      `select t::text as text from tokens t union all select e::text from account_events e
       union all select encode(body, 'escape') from idempotency_keys`,
    )
    for (const { text } of everything) assert.ok(!text?.includes(made.token.slice(20)), 'the secret is kept somewhere')
  })

  it('live as long as asked', async () => {
    const ada = await world.user()
    for (const [body, seconds] of [
      [{ ttl: '30m' }, 1800],
      [{ ttl: '1h' }, 3600],
      [{ ttl: '24h' }, 86_400],
      [{ ttl: '7d' }, 7 * 86_400],
      [{ expires_in_days: 3 }, 3 * 86_400],
      [{ ttl: 'never' }, null],
      [{}, null],
    ] as const) {
      const { expires_at: expiresAt, created_at: createdAt } = bodyOf(await create(ada, body))
      assert.equal(expiresAt === null ? null : expiresAt - createdAt, seconds)
    }
    await assert.rejects(create(ada, { ttl: '1h', expires_in_days: 1 }), isCode('expiry_conflict'))
  })

  it('never outlive the token that makes them', async () => {
    const ada = await world.user()
    const short = bodyOf(await create(ada, { ttl: '1h' }))
    const holder = { ...ada, credentialId: short.id }
    for (const body of [{}, { ttl: 'never' }, { ttl: '24h' }, { expires_in_days: 1 }] as const)
      await assert.rejects(create(holder, body), isCode('validation_failed'))
    await create(holder, { ttl: '30m' })
    await create({ ...holder, kind: 'session' }, { ttl: '24h' })
  })

  it('answer a repeat with the same secret for ten minutes, then only say which token it was', async () => {
    const ada = await world.user()
    const key = randomUUID()
    const first = await create(ada, {}, key)
    const again = await create(ada, {}, key)
    assert.deepEqual(again.body, first.body)
    assert.equal(again.headers?.['Idempotency-Replayed'], 'true')
    assert.equal(await count('tokens where user_id = $1', [ada.userId]), 2)
    await inTheFuture(`update idempotency_keys set secret_expires_at = now() - interval '1 second' where sealed`)
    const gone = isCode('idempotency_secret_expired', { token_id: bodyOf(first).id })
    await assert.rejects(create(ada, {}, key), gone)
    await world.plane.database.transaction(sweepKeys)
    assert.equal(await count('idempotency_keys where sealed and body is not null'), 0)
    await assert.rejects(create(ada, {}, key), gone)
    assert.equal(await count('tokens where user_id = $1', [ada.userId]), 2)
  })

  it('are not told by a reply that another master key sealed', async () => {
    const ada = await world.user()
    const key = randomUUID()
    const body = { name: 'laptop' }
    const { id } = bodyOf(await create(ada, body, key))
    const deps = { ...world.deps, sealingKey: Buffer.alloc(32, 7) }
    await assert.rejects(
      createToken(deps, world.call(ada, { key, body }), body),
      isCode('idempotency_secret_expired', { token_id: id }),
    )
  })

  it('are revoked at once, by their owner only; a repeat answers the same record', async () => {
    const ada = await world.user()
    const { id } = bodyOf(await create(ada))
    await assert.rejects(revokeToken(world.deps, world.call(await world.user()), id), isCode('token_not_found'))
    const record = bodyOf(await revokeToken(world.deps, world.call(ada), id))
    assert.ok(record.revoked_at !== null)
    assert.deepEqual(bodyOf(await revokeToken(world.deps, world.call(ada), id)), record)
    assert.deepEqual(
      (await accountEvents(id)).map(({ type }) => type),
      ['create_token', 'revoke_token'],
    )
    await assert.rejects(
      revokeToken(world.deps, world.call(ada), 'tok_01234567890123456789ab'),
      isCode('token_not_found'),
    )
  })

  it('stay in the list for 30 days after they were revoked, newest first, page by page', async () => {
    const ada = await world.user()
    const made = []
    for (let n = 0; n < 5; n++) made.unshift(bodyOf(await create(ada)).id)
    await revokeToken(world.deps, world.call(ada), made[1]!)
    await revokeToken(world.deps, world.call(ada), made[3]!)
    await inTheFuture(`update tokens set revoked_at = now() - interval '31 days' where id = '${made[3]!}'`)
    const seen: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await listTokens(world.plane.database, ada.userId!, { after, limit: 2 })
      seen.push(...page.items.map(({ id }) => id))
      if (page.nextCursor === null) break
      after = page.nextCursor
    }
    assert.deepEqual(seen, [made[0], made[1], made[2], made[4], ada.credentialId])
  })

  it('are at most 500 active ones a user, also when many are made at once', async () => {
    const ada = await world.user()
    await world.plane.database.rows(
      `insert into tokens (id, user_id, kind, name, digest, token_prefix)
       select 'tok_' || lpad(n::text, 26, '0'), $1, 'personal', 'x', sha256(($1 || n)::bytea), 'x' from generate_series(1, 497) n`,
      [ada.userId],
    )
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => create(ada)))
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 2)
    for (const result of results)
      if (result.status === 'rejected') isCode('quota_exceeded', { limit: 500 })(result.reason)
  })

  describe('makeUser', () => {
    const make = (email: string | undefined) =>
      makeUser(world.plane.database, { email, name: 'Ada', isOperator: false, tokenName: 'made by hand' })

    it('makes a user with a token, and another token for a known address in any case', async () => {
      const first = await make('Ada@Example.com')
      assert.ok(first.created && tokenKindOf(first.token) === 'personal')
      assert.equal((await findUser(world.plane.database, first.userId))?.email, 'ada@example.com')
      const second = await make('ADA@example.com')
      assert.deepEqual([second.userId, second.created], [first.userId, false])
      assert.notEqual(second.token, first.token)
      assert.equal((await accountEvents(first.tokenId))[0]?.type, 'create_user')
      assert.equal((await accountEvents(second.tokenId))[0]?.metadata['credential_kind'], 'local')
    })

    it('makes one user for an address that sixteen ask for at once', async () => {
      const made = await Promise.all(Array.from({ length: 16 }, () => make('eve@example.com')))
      assert.equal(new Set(made.map(({ userId }) => userId)).size, 1)
      assert.equal(made.filter(({ created }) => created).length, 1)
    })

    it('makes one user for a name without an address, however many ask; a token that replaces ends its namesakes', async () => {
      const input = { email: undefined, name: 'local-operator', isOperator: true, tokenName: 'First start' }
      const ask = (more: Partial<MakeUserInput> = {}) => makeUser(world.plane.database, { ...input, ...more })
      const first = await ask()
      const others = await Promise.all(Array.from({ length: 8 }, () => ask()))
      const byHand = await ask({ tokenName: 'make user' })
      for (const made of [...others, byHand]) assert.deepEqual([made.userId, made.created], [first.userId, false])
      const last = await ask({ replacesTokens: true })
      const page = await listTokens(world.plane.database, first.userId, { limit: 100, after: undefined })
      const live = page.items.filter(({ revokedAt }) => revokedAt === null).map(({ id }) => id)
      assert.deepEqual(live.sort(), [byHand.tokenId, last.tokenId].sort())
      assert.deepEqual(
        (await accountEvents(first.tokenId)).map(({ type }) => type),
        ['create_user', 'revoke_token'],
      )
      assert.notEqual((await ask({ name: 'another' })).userId, first.userId)
    })

    it('refuses what is no ASCII address', async () => {
      for (const email of ['', 'ada', 'ada@', '@x', 'Ada\u212a@x.com', 'a b@x.com', 'a@x.com\n'])
        await assert.rejects(make(email), isCode('validation_failed'))
    })
  })
})
