import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { tokenKindOf } from '../../lib/credentials/token.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { processPlace, startApiProcess } from '../../testkit/api-process.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, created, makeTeam, ORG, PROJECT } from '../../testkit/api-team.ts'
import { REPLICAS } from '../../testkit/full.ts'
import { makeUser } from '../commands/make-user.ts'
import type { CreatedToken, TokenEventRecord } from '../contract/account-tokens.ts'

const BASE_62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** What ends a token, as anybody can compute it: no secret goes into it. */
const checksumOf = (body: string): string => {
  let text = ''
  for (let rest = crc32(body); text.length < 6; rest = Math.floor(rest / 62)) text = BASE_62.charAt(rest % 62) + text
  return text
}

describe('agents’ tokens', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({
      replicas: REPLICAS,
      environment: { SERVICE_PUBLIC_URL: 'https://db.example.com' },
    })
    team = await makeTeam(api)
    await created(team.owner, 'main')
  })
  after(() => api.stop())

  const make = async (body: Readonly<Record<string, unknown>>, maker = team.owner): Promise<CreatedToken> => {
    const answer = await maker.call('createToken', { body: { name: 'agent', ...body } })
    assert.equal(answer.status, 201, answer.text)
    return answer.body
  }
  const refusal = async (body: Readonly<Record<string, unknown>>): Promise<unknown[]> => {
    const answer = await team.owner.call('createToken', { body: { name: 'agent', ...body } })
    return [answer.status, answer.body.code, ...(answer.body.errors ?? []).map(error => error.pointer)]
  }
  const events = async (id: string, query: Readonly<Record<string, string | number>> = {}) => {
    const answer = await team.owner.call('listTokenEvents', { params: { token: id }, query })
    assert.equal(answer.status, 200, answer.text)
    return answer.body
  }
  const short = ({ method, path, status }: TokenEventRecord): string => `${method} ${path} ${status}`

  it('say in themselves what they may and until when, and live eight hours unless told otherwise', async () => {
    const made = await make({ scopes: ['project:acme/shop:deploy'], organization_id: ORG })
    assert.equal(made.kind, 'agent')
    assert.deepEqual(made.scopes, ['project:acme/shop:deploy'])
    assert.equal(made.organization_id, ORG)
    assert.equal(made.expires_at! - made.created_at, 8 * 3600)
    const stamp = new Date(made.expires_at! * 1000).toISOString().slice(0, 16).replaceAll(/[-:]/g, '')
    assert.equal(made.token_prefix, `svc_agt_project.acme.shop.deploy.exp-${stamp}Z`)
    assert.ok(made.token.startsWith(`${made.token_prefix}_`))
    assert.equal((await make({ scopes: ['read'], ttl: 'never' })).expires_at, null)
    const days = await make({ scopes: ['read'], expires_in_days: 2 })
    assert.equal(days.expires_at! - days.created_at, 2 * 86_400)
  })

  it('come with a text for the agent, and a URL that ends them', async () => {
    const made = await make({ scopes: ['org:acme:read'] })
    assert.equal(made.revoke_url, `https://db.example.com/v1/account/tokens/${made.id}`)
    for (const part of [
      made.token,
      made.revoke_url,
      'org:acme:read',
      new Date(made.expires_at! * 1000).toISOString().slice(0, 16),
    ])
      assert.ok(made.agent_message?.includes(part), part)
    const own = await fetch(made.revoke_url.replace('https://db.example.com', api.url), {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${made.token}`, 'Idempotency-Key': 'done' },
    })
    assert.equal(own.status, 200)
    assert.equal((await new ApiClient(api.url, made.token).call('listOrganizations')).status, 401)
  })

  it('are refused with scopes that are none, that need an organization, or that name another', async () => {
    assert.deepEqual(await refusal({ scopes: [] }), [400, 'validation_failed', '#/scopes'])
    assert.deepEqual(await refusal({ scopes: ['read', 'org:acme:owner'] }), [400, 'validation_failed', '#/scopes/1'])
    assert.deepEqual(await refusal({ scopes: ['read', 'read'] }), [400, 'validation_failed', '#/scopes'])
    assert.deepEqual(await refusal({ organization_id: ORG }), [400, 'validation_failed', '#/organization_id'])
    assert.deepEqual(await refusal({ scopes: ['project:acme/shop:read'] }), [400, 'scope_organization_required'])
    assert.deepEqual(await refusal({ scopes: ['env:acme/shop/main:read'] }), [400, 'scope_organization_required'])
    assert.deepEqual(await refusal({ scopes: ['org:other:read'], organization_id: ORG }), [
      400,
      'scope_organization_mismatch',
    ])
    // Of organizations of others they learn nothing: it is as if they were not there.
    assert.deepEqual(await refusal({ scopes: ['org:other:read'] }), [404, 'organization_not_found'])
    assert.deepEqual(await refusal({ scopes: ['read'], organization_id: 'nowhere' }), [404, 'organization_not_found'])
    assert.deepEqual(await refusal({ scopes: ['read'], ttl: '1h', expires_in_days: 1 }), [400, 'expiry_conflict', '#'])
  })

  it('are judged by their row: a token whose text was changed is no token', async () => {
    const made = await make({ scopes: ['org:acme:read'] })
    const changed = made.token.replace('.read.', '.admin.')
    assert.notEqual(changed, made.token)
    assert.equal((await new ApiClient(api.url, changed).call('listOrganizations')).status, 401)
  })

  for (const [what, was, now] of [
    ['scope', '.read.', '.admin.'],
    ['end', /exp-\d{8}/, 'exp-20991231'],
  ] as const)
    it(`are known by their digest: another ${what} in their text is refused also with the checksum of that text`, async () => {
      const made = await make({ scopes: ['org:acme:read'] })
      const body = made.token.replace(was, now).slice(0, -6)
      const forged = body + checksumOf(body)
      assert.notEqual(forged, made.token)
      assert.equal(made.token.slice(0, -6) + checksumOf(made.token.slice(0, -6)), made.token)
      // It comes past the gate that looks at nothing but the text.
      assert.equal(tokenKindOf(forged), 'agent')
      const refused = await new ApiClient(api.url, forged).call('listOrganizations')
      assert.deepEqual([refused.status, refused.body.code], [401, 'invalid_token'])
      assert.equal((await new ApiClient(api.url, made.token).call('listOrganizations')).status, 200)
    })

  it('may do what their scopes and the role of their user both allow, at each call', async () => {
    const made = await make({ scopes: ['org:acme:admin'] }, team.developer)
    const agent = new ApiClient(api.url, made.token)
    const env = { params: at('main') }
    assert.equal((await agent.call('getEnvironment', env)).status, 200)
    assert.equal((await agent.call('listAuditEvents', { params: { org: ORG } })).body.code, 'forbidden')
    const params = { org: ORG, subject: `user:${team.developer.userId}` }
    await team.owner.call('putMember', { params, body: { role: 'admin' } })
    assert.equal((await agent.call('listAuditEvents', { params: { org: ORG } })).status, 200)
    await team.owner.call('putMember', { params, body: { role: 'developer' } })
    assert.equal((await agent.call('listAuditEvents', { params: { org: ORG } })).body.code, 'forbidden')
  })

  it('say what they lack, as RFC 6750 has it', async () => {
    const agent = new ApiClient(
      api.url,
      (await make({ scopes: ['project:acme/shop:read'], organization_id: ORG })).token,
    )
    const answer = await agent.call('suspendEnvironment', { params: at('main') })
    assert.deepEqual([answer.status, answer.body.code], [403, 'insufficient_scope'])
    const body = answer.body as unknown as Record<string, unknown>
    assert.deepEqual(body['missing_permissions'], ['env:acme/shop/main:deploy'])
    assert.equal(
      answer.headers.get('www-authenticate'),
      'Bearer realm="svc", error="insufficient_scope", scope="env:acme/shop/main:deploy"',
    )
  })

  it('see the organizations that they are about', async () => {
    const second = await team.owner.call('putOrganization', { params: { org: 'second' }, body: { name: 'Second' } })
    assert.equal(second.status, 200)
    const seen = async (body: Readonly<Record<string, unknown>>): Promise<string[]> =>
      (await new ApiClient(api.url, (await make(body)).token).call('listOrganizations')).body.organizations.map(
        each => each.organization_id,
      )
    assert.deepEqual(await seen({ scopes: ['read'] }), [ORG, 'second'])
    assert.deepEqual(await seen({ scopes: ['org:second:read'] }), ['second'])
    assert.deepEqual(await seen({ scopes: ['read'], organization_id: ORG }), [ORG])
    assert.deepEqual(await seen({ scopes: ['project:acme/shop:read'], organization_id: ORG }), [ORG])
  })

  it('clone nothing that their scopes do not reach', async () => {
    const scopes = ['env:acme/shop/pr-7:deploy']
    const agent = new ApiClient(api.url, (await make({ scopes, organization_id: ORG })).token)
    const body = { organization_id: ORG, project_id: PROJECT, environment_id: 'pr-7', kind: 'preview' }
    const cloning = await agent.call('createEnvironment', { body: { ...body, source_environment_id: 'main' } })
    assert.deepEqual([cloning.status, cloning.body.code], [403, 'insufficient_scope'])
    const empty = await agent.call('createEnvironment', { body: { ...body, source_environment_id: null } })
    assert.equal(empty.status, 202, empty.text)
  })

  it('begin and end in the audit log of the organization that they are bound to; of others the log of sign-ins tells', async () => {
    const told = (id: string) =>
      api.plane.database.rows<Readonly<Record<string, unknown>>>(
        `select organization_id as place, action, actor, metadata ->> 'name' as name, metadata ->> 'credential_id' as by
           from audit_events where resource_kind = 'token' and resource_id = $1
         union all select 'sign-ins', type, 'user:' || user_id, metadata ->> 'name', metadata ->> 'credential_id'
           from account_events where metadata ->> 'token_id' = $1 order by action`,
        [id],
      )
    const { userId, tokenId } = team.developer
    for (const [place, more] of [
      [ORG, { organization_id: ORG }],
      ['sign-ins', {}],
    ] as const) {
      const { id, token } = await make({ scopes: ['read'], ...more }, team.developer)
      // Twice: whoever comes second finds it done.
      for (const caller of [new ApiClient(api.url, token), team.developer])
        assert.equal((await caller.call('revokeToken', { params: { token: id } })).status, 200)
      const event = { place, actor: `user:${userId}`, name: 'agent' }
      assert.deepEqual(await told(id), [
        { ...event, action: 'create_token', by: tokenId },
        { ...event, action: 'revoke_token', by: id },
      ])
    }
  })

  it('end when the member who made them is removed, as far as they are bound to the organization', async () => {
    const caller = await api.makeCaller('leaver')
    const params = { org: ORG, subject: `user:${caller.userId}` }
    await team.owner.call('putMember', { params, body: { role: 'developer' } })
    const bound = await make({ scopes: ['read'], organization_id: ORG }, caller)
    const free = await make({ scopes: ['read'] }, caller)
    await team.owner.call('removeMember', { params })
    const { events: told } = (await team.owner.call('listAuditEvents', { params: { org: ORG }, query: { limit: 200 } }))
      .body
    const removed = told.findLast(({ action }) => action === 'remove_member')
    assert.deepEqual([removed?.resource_id, removed?.metadata['tokens_revoked']], [params.subject, 1])
    assert.equal((await new ApiClient(api.url, bound.token).call('listOrganizations')).status, 401)
    const left = await new ApiClient(api.url, free.token).call('listOrganizations')
    assert.deepEqual([left.status, left.body.organizations], [200, []])
    // Being a member again does not bring it back.
    await team.owner.call('putMember', { params, body: { role: 'developer' } })
    assert.equal((await new ApiClient(api.url, bound.token).call('listOrganizations')).status, 401)
  })

  it('are revoked on every replica from the next request on', async () => {
    const replica = await api.startReplica()
    for (let i = 0; i < 20; i++) {
      const made = await make({ scopes: ['read'] })
      const [here, there] = [new ApiClient(api.url, made.token), new ApiClient(replica, made.token)]
      assert.deepEqual(
        [(await here.call('listOrganizations')).status, (await there.call('listOrganizations')).status],
        [200, 200],
      )
      await team.owner.call('revokeToken', { params: { token: made.id } })
      assert.deepEqual(
        [(await there.call('listOrganizations')).status, (await here.call('listOrganizations')).status],
        [401, 401],
      )
    }
  })

  describe('and what they were used for', () => {
    it('is listed newest first, whatever it was answered, without queries', async () => {
      const made = await make({ scopes: ['project:acme/shop:read'], organization_id: ORG })
      const agent = new ApiClient(api.url, made.token)
      await agent.call('getProject', { params: { org: ORG, project: PROJECT } })
      await agent.call('listEnvironments', { query: { organization_id: ORG, project_id: PROJECT } })
      await agent.call('suspendEnvironment', { params: at('main') })
      await agent.call('getEnvironment', { params: at('nothing') })
      await agent.call('listTokens')
      const { events: seen } = await events(made.id)
      assert.deepEqual(seen.map(short), [
        'GET /v1/account/tokens 403',
        `GET /v1/organizations/acme/projects/shop/environments/nothing 404`,
        `POST /v1/organizations/acme/projects/shop/environments/main/suspend 403`,
        'GET /v1/environments 200',
        'GET /v1/organizations/acme/projects/shop 200',
      ])
      assert.ok(seen.every(event => event.client_ip === '127.0.0.1' && Math.abs(event.at - Date.now() / 1000) < 60))
      await team.owner.call('revokeToken', { params: { token: made.id } })
      await agent.call('listOrganizations')
      assert.equal(short((await events(made.id)).events[0]!), 'GET /v1/organizations 401', 'after its end too')
    })

    it('is kept for the last 200, and read page by page', async () => {
      const made = await make({ scopes: ['read'] })
      const agent = new ApiClient(api.url, made.token)
      for (let round = 0; round < 25; round++)
        await Promise.all(Array.from({ length: 10 }, () => agent.call('listOrganizations')))
      await agent.call('getOrganization', { params: { org: ORG } })
      const first = await events(made.id, { limit: 150 })
      assert.equal(first.events.length, 150)
      assert.equal(first.events[0]!.path, '/v1/organizations/acme')
      const second = await events(made.id, { limit: 150, after: first.next_cursor! })
      assert.deepEqual([second.events.length, second.next_cursor], [50, null])
      const kept = await api.plane.database.row<{ n: number }>(
        'select count(*) as n from token_events where token_id = $1',
        [made.id],
      )
      assert.equal(kept?.n, 200)
    })

    it('is kept without the code by which a person finds a device, which proves something', async () => {
      const made = await make({ scopes: ['read'] })
      const asked = await api.nobody.call('requestDeviceCode', { body: { client_name: 'agent' } })
      assert.equal(asked.status, 200, asked.text)
      const params = { user_code: asked.body.user_code }
      const { status } = await new ApiClient(api.url, made.token).call('getDeviceRequest', { params })
      const { events: kept } = await events(made.id)
      assert.deepEqual(kept.map(short), [`GET /v1/auth/device/requests/{user_code} ${status}`])
    })

    it('is in the database a moment later, for every replica, and costs no write a request', async () => {
      const replica = await api.startReplica()
      const made = await make({ scopes: ['read'] })
      const agent = new ApiClient(replica, made.token)
      const xacts = async (): Promise<number> =>
        (await api.plane.database.row<{ n: number }>(
          'select count(distinct xmin::text) as n from token_events where token_id = $1',
          [made.id],
        ))!.n
      await Promise.all(Array.from({ length: 60 }, () => agent.call('listOrganizations')))
      while ((await events(made.id)).events.length < 60) await sleep(20)
      assert.ok((await xacts()) < 20, `${await xacts()} transactions wrote 60 events`)
    })

    it('is kept when its process is told to end at once, for the one that follows', async function () {
      this.timeout(120_000)
      const place = await processPlace()
      const process = await startApiProcess(place)
      const user = { email: 'ada@example.com', name: 'Ada', isOperator: false, tokenName: 'ada' }
      const ada = new ApiClient(process.url, (await makeUser(place.plane.database, user)).token)
      const { body } = await ada.call('createToken', { body: { name: 'agent', scopes: ['read'] } })
      const agent = new ApiClient(process.url, body.token)
      await Promise.all(Array.from({ length: 60 }, () => agent.call('listOrganizations')))
      await process.stop()
      await process.start()
      const kept = await ada.call('listTokenEvents', { params: { token: body.id }, query: { limit: 200 } })
      assert.deepEqual([...new Set(kept.body.events.map(short))], ['GET /v1/organizations 200'])
      assert.equal(kept.body.events.length, 60)
      await process.stop()
      await place.plane.database.stop()
    })

    it('is told of agents’ tokens of the caller alone', async () => {
      const made = await make({ scopes: ['read'] })
      for (const [caller, id] of [
        [team.admin, made.id],
        [team.owner, team.owner.tokenId],
      ] as const) {
        const answer = await caller.call('listTokenEvents', { params: { token: id } })
        assert.deepEqual([answer.status, answer.body.code], [404, 'token_not_found'])
      }
    })
  })
})
