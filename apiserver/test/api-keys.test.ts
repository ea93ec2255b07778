import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, created, creation, makeTeam, ORG } from '../../testkit/api-team.ts'
import type { CreatedApiKey } from '../contract/api-keys.ts'

describe('API keys of an organization', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ replicas: 'processes' })
    team = await makeTeam(api)
    await created(team.owner, 'main')
  })
  after(() => api.stop())

  const make = async (scopes: readonly string[], name = 'ci'): Promise<CreatedApiKey> => {
    const answer = await team.admin.call('createApiKey', { params: { org: ORG }, body: { name, scopes }, key: null })
    assert.equal(answer.status, 201, answer.text)
    return answer.body
  }

  it('show their secret once, and are listed without it', async () => {
    const made = await make(['deploy'])
    assert.match(made.secret, /^svck_[0-9A-Za-z]{49}$/)
    assert.ok(made.secret.startsWith(made.key_prefix) && made.key_prefix.length === 13)
    assert.equal(made.created_by, `user:${team.admin.userId}`)
    const listed = await team.owner.call('listApiKeys', { params: { org: ORG } })
    assert.ok(!listed.text.includes(made.secret.slice(13)))
    const { secret: _secret, ...record } = made
    assert.deepEqual(
      listed.body.items.find(key => key.api_key_id === made.api_key_id),
      record,
    )
  })

  it('are made once under one key, which shows the same secret for a while', async () => {
    const request = { params: { org: ORG }, body: { name: 'once', scopes: ['read'] }, key: 'make-once' }
    const [first, again] = [
      await team.owner.call('createApiKey', request),
      await team.owner.call('createApiKey', request),
    ]
    assert.deepEqual([first.status, again.text], [201, first.text])
    await api.plane.database.rows(`update idempotency_keys set secret_expires_at = now() - interval '1 s' where sealed`)
    const late = await team.owner.call('createApiKey', request)
    assert.deepEqual([late.status, late.body.code], [409, 'idempotency_secret_expired'])
    assert.equal((late.body as unknown as Record<string, unknown>)['api_key_id'], first.body.api_key_id)
  })

  it('speak for their organization, and say so in what they did', async () => {
    const made = await make(['deploy'])
    const key = new ApiClient(api.url, made.secret)
    const answer = await key.call('createEnvironment', { body: creation('by-key') })
    assert.equal(answer.status, 202, answer.text)
    const { body } = await team.owner.call('listAuditEvents', { params: { org: ORG }, query: { limit: 200 } })
    const event = body.events.find(each => each.resource_id === 'shop/by-key')
    assert.equal(event?.actor, `apikey:${made.api_key_id}`)
    assert.deepEqual([event.metadata['credential_kind'], event.metadata['credential_id']], ['api_key', made.api_key_id])
    const own = await key.call('listOrganizations')
    assert.deepEqual(
      own.body.organizations.map(each => [each.organization_id, each.role]),
      [[ORG, 'developer']],
    )
  })

  it('outlive the member who made them', async () => {
    const caller = await api.makeCaller('leaver')
    const params = { org: ORG, subject: `user:${caller.userId}` }
    await team.owner.call('putMember', { params, body: { role: 'admin' } })
    const made = await caller.call('createApiKey', { params: { org: ORG }, body: { name: 'ci', scopes: ['read'] } })
    await team.owner.call('removeMember', { params })
    const key = new ApiClient(api.url, made.body.secret)
    assert.equal((await key.call('getEnvironment', { params: at('main') })).status, 200)
  })

  it('are revoked at once on every replica; the same is answered again, and the list leaves them out', async () => {
    const made = await make(['admin'])
    const replica = new ApiClient(await api.startReplica(), made.secret)
    assert.equal((await replica.call('listOrganizations')).status, 200)
    const params = { org: ORG, api_key: made.api_key_id }
    const revoked = await team.owner.call('revokeApiKey', { params })
    assert.ok(revoked.body.revoked_at_epoch_seconds !== null)
    assert.equal((await replica.call('listOrganizations')).status, 401)
    assert.deepEqual((await team.owner.call('revokeApiKey', { params })).body, revoked.body)
    const { body } = await team.owner.call('listApiKeys', { params: { org: ORG }, query: { limit: 200 } })
    assert.ok(body.items.every(key => key.api_key_id !== made.api_key_id))
  })

  it('are told apart by organization: another one’s key is not there', async () => {
    const made = await make(['read'])
    const params = { org: 'other', api_key: made.api_key_id }
    const answer = await team.outsider.call('revokeApiKey', { params })
    assert.deepEqual([answer.status, answer.body.code], [404, 'api_key_not_found'])
    assert.equal((await new ApiClient(api.url, made.secret).call('listOrganizations')).status, 200)
  })

  it('keep to production’s protection, by their level', async () => {
    const project = { org: ORG, project: 'guarded' }
    const body = { region: 'local', postgres_major: 17, protect_production: true }
    assert.equal((await team.owner.call('putProject', { params: project, body })).status, 200)
    const wanted = creation('main', { project_id: 'guarded', kind: 'production' })
    const deploy = await new ApiClient(api.url, (await make(['deploy'])).secret).call('createEnvironment', {
      body: wanted,
    })
    assert.deepEqual([deploy.status, deploy.body.code], [403, 'insufficient_scope'])
    const admin = await new ApiClient(api.url, (await make(['admin'])).secret).call('createEnvironment', {
      body: wanted,
    })
    assert.equal(admin.status, 202, admin.text)
  })

  it('are 200 at most', async () => {
    await api.plane.database.rows(
      `insert into api_keys (id, organization_id, name, scopes, digest, key_prefix, created_by)
       select 'key_' || lpad(n::text, 26, '0'), 'other', 'many', '{read}', sha256(n::text::bytea), 'svck_', $1 from generate_series(1, 200) n`,
      [team.outsider.userId],
    )
    const body = { name: 'one too many', scopes: ['read'] }
    const answer = await team.outsider.call('createApiKey', { params: { org: 'other' }, body })
    assert.deepEqual([answer.status, answer.body.code], [422, 'quota_exceeded'])
  })

  it('note when they were last used', async () => {
    const made = await make(['read'])
    const key = new ApiClient(api.url, made.secret)
    for (;;) {
      await key.call('listOrganizations')
      const { body } = await team.owner.call('listApiKeys', { params: { org: ORG }, query: { limit: 200 } })
      if (body.items.some(each => each.api_key_id === made.api_key_id && each.last_used_epoch_seconds !== null)) break
    }
  })
})
