import assert from 'node:assert/strict'
import { newPersonalToken } from '../../lib/credentials/token.ts'
import { type ErrorCode } from '../../lib/errors/codes.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, makeTeam, ORG } from '../../testkit/api-team.ts'
import { apiServerConfig } from '../config/config.ts'

describe('request limits', () => {
  let api: TestApiServer
  let team: ApiTeam
  const limits = {
    requestsPerMinute: 600,
    mutationsPerMinute: 30,
    connectionReadsPerMinute: 2,
    verificationsPerMinute: 2,
    anonymousPerMinute: 5,
    burst: 100,
  }
  before(async () => {
    api = await startTestApiServer({ config: { limits }, environment: {} })
    team = await makeTeam(api)
  })
  after(() => api.stop())

  it('every authenticated answer says what is left', async () => {
    const first = await team.viewer.call('listTokens')
    assert.equal(first.headers.get('ratelimit-policy'), '"default";q=600;w=60')
    assert.match(first.headers.get('ratelimit') ?? '', /^"default";r=99;t=\d+$/)
    const mutation = await team.viewer.call('createToken', { body: {} })
    assert.match(mutation.headers.get('ratelimit') ?? '', /^"default";r=9[89];t=\d+, "mutations";r=29;t=\d+$/)
  })

  it('mutations have a limit of their own, for each credential alone', async () => {
    const caller = await api.makeCaller('busy')
    const statuses: number[] = []
    for (let i = 0; i < 35; i++) statuses.push((await caller.call('createToken', { body: {} })).status)
    assert.ok(statuses.slice(0, 30).every(status => status === 400))
    const refused = await caller.call('createToken', { body: { name: 'x' } })
    assert.deepEqual([refused.status, refused.body.code], [429, 'rate_limited'])
    assert.deepEqual((refused.body as { 'violated-policies'?: string[] })['violated-policies'], ['mutations'])
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    assert.equal((await caller.call('listTokens')).status, 200, 'reads go on')
    assert.equal((await team.admin.call('createToken', { body: { name: 'mine' } })).status, 201, 'others go on')
    assert.match(await api.registry.metrics(), /svc_http_rate_limited_total\{policy="mutations"\} [1-9]/)
  })

  it('a refusal is among the last requests of an agent’s token', async () => {
    const made = await team.developer.call('createToken', { body: { name: 'busy agent', scopes: ['read'] } })
    const agent = new ApiClient(api.url, made.body.token)
    const statuses: number[] = []
    while (!statuses.includes(429)) statuses.push((await agent.call('createToken', { body: {} })).status)
    const { events } = (await team.developer.call('listTokenEvents', { params: { token: made.body.id } })).body
    assert.deepEqual(
      events.map(({ status }) => status),
      statuses.toReversed(),
    )
    assert.deepEqual([events[0]?.method, events[0]?.path, events[0]?.status], ['POST', '/v1/account/tokens', 429])
  })

  it('reads of connections are few', async () => {
    const codes = []
    for (let i = 0; i < 3; i++)
      codes.push((await team.developer.call('getConnection', { params: at('nothing') })).body.code)
    assert.deepEqual(codes, ['environment_not_found', 'environment_not_found', 'rate_limited'])
  })

  it('verifications of an audit log are few for an organization, whoever of it asks, and nobody else spends them', async () => {
    const verify = async (caller: ApiClient, org = ORG) => caller.call('verifyAuditEvents', { params: { org } })
    for (const stranger of [team.outsider, team.viewer])
      for (let i = 0; i < 3; i++) assert.notEqual((await verify(stranger)).status, 429)
    const key = await team.owner.call('createApiKey', { params: { org: ORG }, body: { name: 'ci', scopes: ['admin'] } })
    const first = await verify(team.owner)
    assert.deepEqual([first.status, first.body.verified], [200, true])
    assert.match(first.headers.get('ratelimit-policy') ?? '', /, "verification";q=2;w=60$/)
    assert.equal((await verify(new ApiClient(api.url, key.body.secret))).status, 200)
    for (const caller of [team.admin, team.owner]) {
      const refused = await verify(caller)
      assert.deepEqual([refused.status, refused.body.code], [429, 'rate_limited'])
      assert.deepEqual((refused.body as { 'violated-policies'?: string[] })['violated-policies'], ['verification'])
      const seconds = Number(refused.headers.get('retry-after'))
      assert.ok(seconds >= 1 && seconds <= 30, `${seconds} s`)
    }
    assert.equal((await team.owner.call('listAuditEvents', { params: { org: ORG } })).status, 200, 'reads go on')
    assert.equal((await verify(team.outsider, 'other')).status, 200, 'others go on')
    assert.match(await api.registry.metrics(), /svc_http_rate_limited_total\{policy="verification"\} 2/)
  })

  /** Calls until the address has no failure left. */
  const spendFailures = async (caller: ApiClient): Promise<readonly ErrorCode[]> => {
    const codes: ErrorCode[] = []
    for (let i = 0; i < 8; i++) codes.push((await caller.call('listTokens')).body.code)
    return codes
  }

  it('junk is limited by address, whatever it looks like', async () => {
    for (const [junk, first] of [
      [api.nobody, 'unauthenticated'],
      [new ApiClient(api.url, 'svc_pat_nonsense'), 'invalid_token'],
      [new ApiClient(api.url, newPersonalToken().token), 'invalid_token'],
    ] as const) {
      const codes = await spendFailures(junk)
      assert.equal(codes.at(-1), 'rate_limited')
      assert.ok(
        codes.every(code => code === first || code === 'rate_limited'),
        codes.join(),
      )
    }
    assert.equal((await api.nobody.call('getHealth')).status, 200, 'health is never limited')
  })

  it('junk locks nobody out whose credential is valid, seen before or not', async () => {
    const [seen, unseen] = [await api.makeCaller('seen'), await api.makeCaller('unseen')]
    assert.equal((await seen.call('listTokens')).status, 200)
    assert.equal((await spendFailures(api.nobody)).at(-1), 'rate_limited')
    assert.equal((await seen.call('listTokens')).status, 200)
    assert.equal((await unseen.call('listTokens')).status, 200)
  })

  it('junk locks nobody out where valid credentials are not limited at all', async () => {
    const unlimited = await startTestApiServer({
      operator: false,
      config: { limits: { ...limits, requestsPerMinute: 0 } },
    })
    const caller = await unlimited.makeCaller('unlimited')
    const junk = await spendFailures(unlimited.nobody)
    const answers = [await caller.call('listTokens'), await caller.call('listTokens')]
    await unlimited.stop()
    assert.equal(junk.at(-1), 'rate_limited')
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
  })
})

describe('request limits as they are when nobody sets them', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ operator: false, config: { limits: apiServerConfig({}).limits } })
    team = await makeTeam(api)
  })
  after(() => api.stop())

  const policyOf = ({ headers }: { readonly headers: Headers }): string => headers.get('ratelimit-policy') ?? ''
  const leftOf = ({ headers }: { readonly headers: Headers }): readonly number[] =>
    [...(headers.get('ratelimit') ?? '').matchAll(/r=(\d+)/g)].map(([, left]) => Number(left))

  it('are 3,000 requests a minute of a credential, 1,000 of them changes, 500 at once', async () => {
    const read = await team.viewer.call('listTokens')
    assert.deepEqual([policyOf(read), leftOf(read)], ['"default";q=3000;w=60', [499]])
    const fresh = await api.makeCaller('fresh')
    const change = await fresh.call('createToken', { body: {} })
    assert.deepEqual([policyOf(change), leftOf(change)], ['"default";q=3000;w=60, "mutations";q=1000;w=60', [499, 499]])
  })

  it('are 30 reads of connections', async () => {
    const params = at('nothing')
    const answers = []
    for (let i = 0; i < 31; i++) answers.push(await team.developer.call('getConnection', { params }))
    assert.match(policyOf(answers[0]!), /, "connection";q=30;w=60$/)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [...Array<number>(30).fill(404), 429],
    )
  })

  it('are 60 requests without a valid credential of an address', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 61; i++) statuses.push((await api.nobody.call('listTokens')).status)
    assert.deepEqual(statuses, [...Array<number>(60).fill(401), 429])
  })
})
