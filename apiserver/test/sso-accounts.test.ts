import assert from 'node:assert/strict'
import { ApiClient } from '../../testkit/api-client.ts'
import { ORG } from '../../testkit/api-team.ts'
import {
  configureSso,
  finishSso,
  SsoBrowser,
  type SsoSession,
  signInBySso,
  ssoConfiguration,
  startSso,
} from '../../testkit/sso.ts'
import { type SsoWorld, startSsoWorld } from '../../testkit/sso-world.ts'
import { makeUser } from '../commands/make-user.ts'
import { DEVICE_GRANT } from '../contract/device-flow.ts'

const OTHER = 'other'

describe('accounts of single sign-on', () => {
  let world: SsoWorld
  before(async () => {
    world = await startSsoWorld()
  })
  after(() => world.stop())
  beforeEach(async () => {
    world.provider.claims = {}
    await configureSso(world.team.owner, ORG, world.provider, { default_role: 'developer' })
  })

  const signIn = (name: string, org = ORG, more: object = {}): Promise<SsoSession> =>
    signInBySso(world.api, org, new SsoBrowser(name), more)
  const put = (subject: string, role = 'viewer', { team } = world) =>
    team.owner.call('putMember', { params: { org: ORG, subject }, body: { role } })
  const remove = (subject: string) => world.team.owner.call('removeMember', { params: { org: ORG, subject } })
  /** What a sign-in comes to. */
  const attempt = async (name: string) => {
    const { authorization_url, flow_token } = await startSso(world.api.nobody, ORG)
    return finishSso(world.api.nobody, { ...(await new SsoBrowser(name).signIn(authorization_url)), flow_token })
  }
  const membersOf = async (org = ORG) =>
    (await (org === ORG ? world.team.owner : world.team.outsider).call('listMembers', { params: { org } })).body.members
  const statusOf = async (client: ApiClient, org = ORG) =>
    (await client.call('listProjects', { params: { org } })).status

  it('are named by the organization, and told who they are when they are no members', async () => {
    await configureSso(world.team.owner, ORG, world.provider)
    const refused = await attempt('auth0|new/one')
    assert.deepEqual([refused.status, refused.body.code], [403, 'membership_required'])
    const told = (refused.body as unknown as { sso_subject: string }).sso_subject
    assert.equal(told, 'auth0|new/one')
    assert.equal(await world.lastFailure(), 'no member')
    assert.equal((await world.rows('select 1 from users where sso_subject = $1', [told])).length, 0)
    const named = await put(`sso:${told}`, 'admin')
    assert.equal(named.status, 200, named.text)
    assert.deepEqual([named.body.sso_subject, named.body.email], [told, null])
    assert.equal(named.body.subject, `user:${named.body.user_id}`)
    const { user, client } = await signIn('auth0|new/one')
    assert.equal(user.user_id, named.body.user_id)
    // What they do is audited under the account, never under what a provider may say.
    const project = { region: 'local', postgres_major: 17 }
    assert.equal(
      (await client.call('putProject', { params: { org: ORG, project: 'mine' }, body: project })).status,
      200,
    )
    const { events } = (await world.team.owner.call('listAuditEvents', { params: { org: ORG } })).body
    assert.deepEqual(
      [events.at(-1)?.actor, events.at(-1)?.metadata['credential_kind']],
      [`user:${user.user_id}`, 'session'],
    )
    assert.deepEqual((await membersOf()).find(each => each.user_id === user.user_id)?.name, 'Name of auth0|new/one')
  })

  it('become members at their first sign-in where there is a role for that, which is audited', async () => {
    const { user } = await signIn('joiner')
    const member = (await membersOf()).find(each => each.user_id === user.user_id)
    assert.deepEqual([member?.role, member?.sso_subject], ['developer', 'joiner'])
    const { events } = (await world.team.owner.call('listAuditEvents', { params: { org: ORG } })).body
    const event = events.find(each => each.resource_id === `user:${user.user_id}`)
    assert.deepEqual(
      [event?.action, event?.metadata['role'], event?.metadata['method']],
      ['put_member', 'developer', 'sso'],
    )
    // A role that was given stays: the default is for the first time.
    await put('sso:joiner', 'viewer')
    await signIn('joiner')
    assert.equal((await membersOf()).find(each => each.user_id === user.user_id)?.role, 'viewer')
  })

  it('end with their membership, and stay away until somebody adds them', async () => {
    const { client, user } = await signIn('leaver')
    const token = (await client.call('createToken', { body: { name: 'mine' } })).body.token
    assert.equal(await statusOf(new ApiClient(world.api.url, token)), 200)
    assert.equal((await remove('sso:leaver')).status, 204)
    assert.equal(await statusOf(client), 401)
    assert.equal(await statusOf(new ApiClient(world.api.url, token)), 401)
    assert.deepEqual((await attempt('leaver')).body.code, 'membership_required')
    assert.equal((await put('sso:leaver')).body.user_id, user.user_id)
    const again = await signIn('leaver')
    assert.equal(again.user.user_id, user.user_id)
    assert.equal(await statusOf(new ApiClient(world.api.url, token)), 401)
    // By themselves too.
    const left = await again.client.call('removeMember', { params: { org: ORG, subject: user.user_id } })
    assert.equal(left.status, 204, left.text)
    assert.equal(await statusOf(again.client), 401)
  })

  it('do not get in when they are disabled', async () => {
    const { client, user } = await signIn('disabled')
    await world.rows('update users set disabled_at = now() where user_id = $1', [user.user_id])
    assert.equal(await statusOf(client), 401)
    assert.deepEqual((await attempt('disabled')).body.code, 'membership_required')
  })

  it('are others in another organization, whatever its provider says: the same issuer, the same subject', async () => {
    await configureSso(world.team.outsider, OTHER, world.provider, { default_role: 'admin' })
    const [here, there] = [await signIn('same'), await signIn('same', OTHER)]
    assert.notEqual(here.user.user_id, there.user.user_id)
    assert.deepEqual([await statusOf(here.client, OTHER), await statusOf(there.client, ORG)], [404, 404])
    assert.ok(!(await membersOf()).some(each => each.user_id === there.user.user_id))
    // Nor are they taken into another organization.
    const params = { org: OTHER, subject: `user:${here.user.user_id}` }
    const taken = await world.team.outsider.call('putMember', { params, body: { role: 'viewer' } })
    assert.deepEqual([taken.status, taken.body.code], [404, 'user_not_found'])
    const own = await there.client.call('putMember', { params, body: { role: 'viewer' } })
    assert.equal(own.body.code, 'user_not_found')
    // And a membership that got there all the same is out of reach.
    const token = (await here.client.call('createToken', { body: { name: 'mine' } })).body.token
    await world.rows(`insert into memberships (organization_id, user_id, role) values ($1, $2, 'owner')`, [
      OTHER,
      here.user.user_id,
    ])
    for (const client of [here.client, new ApiClient(world.api.url, token)]) {
      assert.equal(await statusOf(client, OTHER), 404)
      const { organizations } = (await client.call('listOrganizations')).body
      assert.deepEqual(
        organizations.map(each => each.organization_id),
        [ORG],
      )
    }
    await world.rows('delete from memberships where organization_id = $1 and user_id = $2', [OTHER, here.user.user_id])
  })

  it('are never linked by what a provider says of mail: the address of an owner opens nothing of theirs', async () => {
    const { owner } = world.team
    world.provider.claims = { email: owner.email, email_verified: true, name: 'local-operator' }
    const { user, client } = await signIn('impostor')
    assert.notEqual(user.user_id, owner.userId)
    assert.equal(user.email, null)
    assert.equal(
      (await client.call('putSso', { params: { org: ORG }, body: ssoConfiguration(world.provider) })).status,
      403,
    )
    // The address is still whose it was, and a name of ours names nobody new.
    const [count] = await world.rows<{ n: number }>('select count(*)::int as n from users where email = $1', [
      owner.email,
    ])
    assert.equal(count?.n, 1)
    world.provider.claims = { name: 'local-operator' }
    const second = await signIn('impostor-too')
    const local = { email: undefined, name: 'local-operator', isOperator: true, tokenName: 'local' }
    const made = await makeUser(world.api.plane.database, local)
    assert.ok(made.created && ![user.user_id, second.user.user_id].includes(made.userId))
    assert.equal((await makeUser(world.api.plane.database, local)).userId, made.userId)
  })

  it('make tokens that are bound to the organization, within it', async () => {
    const { client } = await signIn('maker')
    const make = (body: object) => client.call('createToken', { body: { name: 'token', ...body } })
    const personal = await make({})
    assert.deepEqual([personal.status, personal.body.kind, personal.body.organization_id], [201, 'personal', ORG])
    const agent = await make({ scopes: ['deploy'] })
    assert.deepEqual([agent.status, agent.body.organization_id], [201, ORG])
    for (const [body, code] of [
      [{ scopes: [`org:${OTHER}:read`] }, 'scope_organization_mismatch'],
      [{ scopes: ['read'], organization_id: OTHER }, 'organization_not_found'],
    ] as const)
      assert.equal((await make(body)).body.code, code)
    // What a bound token makes is bound too.
    const child = await new ApiClient(world.api.url, personal.body.token).call('createToken', {
      body: { name: 'child' },
    })
    assert.equal(child.body.organization_id, ORG)
  })

  it('are no last owner: somebody stays who needs no provider', async () => {
    assert.equal((await put('sso:boss', 'owner')).status, 200)
    const boss = await signIn('boss')
    const { owner } = world.team
    const demote = (client: ApiClient, subject: string) =>
      client.call('putMember', { params: { org: ORG, subject }, body: { role: 'admin' } })
    for (const answer of [
      await demote(boss.client, owner.userId),
      await demote(owner, owner.userId),
      await boss.client.call('removeMember', { params: { org: ORG, subject: owner.userId } }),
    ])
      assert.deepEqual([answer.status, answer.body.code], [409, 'last_owner'])
    assert.equal((await demote(owner, 'sso:boss')).status, 200)
  })

  describe('when their provider goes or is another', () => {
    /** Everything by which somebody of single sign-on acts. */
    const everything = async (name: string) => {
      const { client } = await signIn(name)
      const personal = (await client.call('createToken', { body: { name: 'p' } })).body.token
      const agent = (await client.call('createToken', { body: { name: 'a', scopes: ['read'] } })).body.token
      const asked = await world.api.nobody.call('requestDeviceCode', { body: { client_name: 'agent' } })
      const approved = await client.call('approveDevice', {
        body: { user_code: asked.body.user_code, scopes: ['read'] },
      })
      assert.equal(approved.status, 200, approved.text)
      const clients = [client, ...[personal, agent].map(token => new ApiClient(world.api.url, token))]
      return { clients, deviceCode: asked.body.device_code }
    }
    const fetched = (device_code: string) =>
      world.api.nobody.call('pollDeviceToken', { body: { grant_type: DEVICE_GRANT, device_code } })
    const statuses = (clients: readonly ApiClient[]) => Promise.all(clients.map(each => statusOf(each)))

    for (const [what, change] of [
      ['removed', () => world.team.owner.call('deleteSso', { params: { org: ORG } })],
      ['another client', () => configureSso(world.team.owner, ORG, world.provider, { client_id: 'another' })],
      ['another issuer', () => configureSso(world.team.owner, ORG, { issuer: 'https://login.example.com' })],
    ] as const)
      it(`nothing of theirs works when it is ${what}; their membership stays`, async () => {
        await world.rows(`delete from attempts where bucket = 'device-code'`)
        const [{ clients, deviceCode }, own] = [await everything('orphan'), world.team.developer]
        assert.deepEqual(await statuses(clients), [200, 200, 200])
        await change()
        assert.deepEqual(await statuses(clients), [401, 401, 401])
        assert.equal((await fetched(deviceCode)).body.code, 'access_denied')
        // Whoever has an account of their own goes on.
        assert.equal(await statusOf(own), 200)
        assert.ok((await membersOf()).some(each => each.sso_subject === 'orphan'))
        const { events } = (
          await world.team.owner.call('listAuditEvents', { params: { org: ORG }, query: { limit: 200 } })
        ).body
        const { sessions_ended: sessions, tokens_revoked: tokens } = events.at(-1)?.metadata ?? {}
        assert.ok(Number(sessions) >= 1 && Number(tokens) >= 2, JSON.stringify(events.at(-1)))
        await configureSso(world.team.owner, ORG, world.provider)
        assert.equal((await signIn('orphan')).session.method, 'sso')
        assert.deepEqual(await statuses(clients), [401, 401, 401])
      })

    it('goes on when its secret or the role is another', async () => {
      const { client } = await signIn('steady')
      await configureSso(world.team.owner, ORG, world.provider, { default_role: 'viewer' })
      await configureSso(world.team.owner, ORG, world.provider, { client_secret: 'another secret' })
      assert.equal(await statusOf(client), 200)
    })

    it('of a token that is made at that very moment nothing is left', async () => {
      for (let round = 0; round < 8; round++) {
        await configureSso(world.team.owner, ORG, world.provider)
        await put('sso:quick')
        const { client } = await signIn('quick')
        const personal = (await client.call('createToken', { body: { name: 'maker' } })).body.token
        // By the session, or by a token of theirs.
        const maker = round % 2 ? client : new ApiClient(world.api.url, personal)
        const made = await Promise.all([
          ...Array.from({ length: 6 }, () => maker.call('createToken', { body: { name: 'late' } })),
          world.team.owner.call('deleteSso', { params: { org: ORG } }),
        ])
        const tokens = made.flatMap(({ status, body }) => (status === 201 ? [(body as { token: string }).token] : []))
        assert.deepEqual(
          [...new Set(await statuses(tokens.map(token => new ApiClient(world.api.url, token))))],
          tokens.length === 0 ? [] : [401],
        )
        const left = `select 1 from tokens t join users u using (user_id) where u.sso_subject = 'quick' and t.revoked_at is null`
        assert.equal((await world.rows(left)).length, 0)
      }
    })
  })

  describe('approving a device', () => {
    it('binds its token to the organization, and asks for a fresh proof at the provider', async () => {
      const begin = async (more: object = {}) =>
        (await world.api.nobody.call('requestDeviceCode', { body: { client_name: 'agent', ...more } })).body
      const [asked, elsewhere] = [await begin(), await begin({ scopes: [`org:${OTHER}:read`], organization_id: OTHER })]
      const browser = new SsoBrowser('approver')
      const first = await signInBySso(world.api, ORG, browser)
      await world.rows(`update sessions set authenticated_at = authenticated_at - interval '301 s' where id = $1`, [
        first.session.session_id,
      ])
      const approve = (client: ApiClient, user_code: string, scopes = ['read']) =>
        client.call('approveDevice', { body: { user_code, scopes } })
      const stale = await approve(first.client, asked.user_code)
      assert.deepEqual([stale.status, stale.body.code], [403, 'reauthentication_required'])
      assert.deepEqual((stale.body as unknown as { methods: string[] }).methods, ['sso'])
      const fresh = await signInBySso(world.api, ORG, browser, { reauthenticate: true })
      const granted = await approve(fresh.client, asked.user_code)
      assert.equal(granted.status, 200, granted.text)
      const wide = await approve(fresh.client, elsewhere.user_code, [`org:${OTHER}:read`])
      assert.deepEqual([wide.status, wide.body.code], [404, 'organization_not_found'])
      const got = await world.api.nobody.call('pollDeviceToken', {
        body: { grant_type: DEVICE_GRANT, device_code: asked.device_code },
      })
      assert.equal(got.status, 200, got.text)
      const agent = new ApiClient(world.api.url, got.body.access_token)
      assert.deepEqual([await statusOf(agent), await statusOf(agent, OTHER)], [200, 404])
    })
  })
})
